#pragma once

#include <cstdint>
#include <span>
#include <vector>

// How block-diagonal covariances on CPU and device measure drift: along a few vectors v, next to which
// a = Av and vᵀAv are kept by adding up. The squared width of a, aᵀA⁻¹a, is vᵀAv.
namespace olrank {

inline constexpr std::int64_t kBlockProbes = 2;

/// The vectors, [kBlockProbes × Σ sizes]: a random unit vector for each block. They are always the same.
std::vector<double> block_directions(std::span<const std::int64_t> sizes);

/// The largest relative error of energies aᵀA⁻¹a, against vᵀAv; NaN if one is.
double worst_of_energies(std::span<const double> found, std::span<const double> expected);

}  // namespace olrank
