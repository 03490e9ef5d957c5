#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/runtime/execution_context.h"
#include "recommend/reviews.h"
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
/// tree's factors fixed. Users have nothing in common and are fitted in parallel; items one after the
/// other, since pairs tie them together: `parallel` is null. Returns λ Σ‖ũ_i‖².
double add_personal_terms(ExecutionContext* parallel, const SplitData& data,
                          std::span<const std::int32_t> rows, const PairSource* pairs, double penalty,
                          const DescentSettings& descent, FactorRows& factors);

struct GrowthSettings {
  int depth = 6;                 // h, levels of questions
  std::int64_t least_rows = 20;  // a node of fewer asks nothing
  double penalty = 1.0;          // λ_u or λ_v
  bool parent_factor = true;
  std::int64_t finalists = 5;  // candidates that are fitted with their pairs
  DescentSettings descent;
};

/// A tree as grown, with where its rows are.
struct GrownTree {
  FactorTree tree;
  std::vector<std::int32_t> leaf_of;  // of every row, those without data included
  FactorRows factors;                 // of every row: its leaf's
  double penalty = 0.0;               // λ Σ of the squared factors that growing optimised
};

/// Grows a tree from its root, level by level: Jia, Toward Reliable Decision-making in Information Systems,
/// PhD thesis, UVA 2022, Eq. (4.2.5) and (4.2.6). All candidates are screened by the squared part alone, in
/// closed form; the best few are fitted with their pairs. Without pairs the choice is exact. `pairs` may be
/// null. A node with a parent factor optimises the difference to it.
///
/// Items of a pair in different nodes: a node is split with all others as they are at that moment, so that
/// the loss of the whole tree falls with each split.
GrownTree grow_tree(ExecutionContext& context, const SplitData& data, std::span<const std::int32_t> rows,
                    const PairSource* pairs, const GrowthSettings& settings);

/// Every question separates somebody, so that a tree has fewer levels than there are rows with a rating.
/// Throws InvalidArgument for a greater `depth`, of the key `key`; `what` are the rows, "users" or "items".
void check_tree_depth(std::string_view key, std::int64_t depth, const RatingRows& ratings,
                      std::string_view what);

}  // namespace olrank
