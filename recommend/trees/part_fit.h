#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "recommend/trees/factor_rows.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/preference_pairs.h"

namespace olrank {

/// The terms of a node's pairs with their vectors w, one padded row each.
struct NodePairs {
  std::vector<PairTerm> terms;
  FactorRows vectors;
};

/// How the factors of parts are fitted where the closed form does not reach.
struct DescentSettings {
  double pair_weight = 1.0;  // λ_b; 0 leaves the closed form, which is exact then
  int steps = 30;
  double step_size = 0.1;  // of AdaGrad
};

/// The parts of a split and their factors.
struct PartFit {
  std::array<std::vector<double>, kTreeBranches> factors;
  /// Σ_c squared error + λ‖x_c − anchor‖² − λ_b B: Jia, PhD thesis, UVA 2022, Eq. (4.2.6), with squared
  /// norms. It prints i ∈ E in the pairs of the part L; that is i ∈ L.
  double objective = 0.0;
};

/// −Σ log σ(z) over the terms, for rows in parts; `part_of` gives a row's part.
double pair_loss_of_parts(const NodePairs& pairs, std::span<const std::uint8_t> part_of,
                          const std::array<std::vector<double>, kTreeBranches>& factors);

/// Fits the factors of the parts that have rows: the closed form of the squared part, then AdaGrad on all
/// of the objective, of whose iterates the best is kept. Parts without rows keep `without_rows`. `sums` are
/// the squared sums of each part.
PartFit fit_parts(const std::array<std::vector<double>, kTreeBranches>& sums,
                  const std::array<std::int64_t, kTreeBranches>& rows, std::span<const double> anchor,
                  std::span<const double> without_rows, double lambda, const NodePairs& pairs,
                  std::span<const std::uint8_t> part_of, const DescentSettings& settings);

}  // namespace olrank
