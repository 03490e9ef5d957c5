#pragma once

#include <cstdint>
#include <span>

namespace olrank {

/// δ = −weight · σ(−z) for the differences z of the scores of winners and losers, and the sum of −ln σ(z).
/// Jia, PhD thesis, UVA 2022, Eq. (4.1.9), the term of λ_B.
double pair_slopes(std::span<const float> differences, double weight, std::span<float> slopes);

}  // namespace olrank
