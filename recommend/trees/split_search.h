#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/runtime/execution_context.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/pair_source.h"
#include "recommend/trees/squared_sums.h"

namespace olrank {

/// A question that a node may ask, with what the closed form says about it.
struct SplitCandidate {
  std::int32_t feature = -1;
  std::int32_t cut = 0;  // number of the threshold among those of the feature
  float threshold = 0.0F;
  /// By how much Σ_c squared error + λ‖x_c − anchor‖² falls from x_c = anchor to its minimum.
  double reduction = 0.0;
};

/// All nodes of a tree share these.
struct SplitData {
  const Profiles* profiles = nullptr;
  const Thresholds* thresholds = nullptr;
  std::vector<std::uint8_t> reached;  // reached_thresholds()
  std::vector<double> sums;           // squared_sums_of_rows()
  int dimension = 0;

  std::span<const double> sums_of(std::int64_t row) const {
    const std::int64_t size = squared_sums_size(dimension);
    return {sums.data() + row * size, static_cast<std::size_t>(size)};
  }
};

std::vector<std::uint8_t> parts_of_rows(const SplitData& data, std::span<const std::int32_t> rows,
                                        std::int32_t feature, std::int32_t cut);

/// The `wanted` questions of greatest reduction among those that make two parts with rows; on ties by
/// feature, then by threshold. A feature costs one pass over its mentions: squared sums are gathered
/// between thresholds, and running sums over these give the parts of every threshold.
std::vector<SplitCandidate> best_splits(ExecutionContext& context, const SplitData& data,
                                        std::span<const std::int32_t> rows, std::span<const double> anchor,
                                        double lambda, std::int64_t wanted);

/// Adds its personal term to the factor of each row that has data: u_i = u_leaf + ũ_i, where ũ_i minimises
/// Jia, Toward Reliable Decision-making in Information Systems, PhD thesis, UVA 2022, Eq. (4.2.2) with the
/// tree's factors fixed. Users have nothing in common and are fitted in parallel, items one after the
/// other, since pairs tie them together. Returns λ Σ‖ũ_i‖².
double add_user_terms(ExecutionContext& context, const SplitData& data, std::span<const std::int32_t> rows,
                      const PairSource* pairs, double penalty, const DescentSettings& descent,
                      FactorRows& factors);
double add_item_terms(const SplitData& data, std::span<const std::int32_t> rows, const PairSource* pairs,
                      double penalty, const DescentSettings& descent, FactorRows& factors);

}  // namespace olrank
