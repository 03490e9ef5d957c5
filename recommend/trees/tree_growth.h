#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/runtime/execution_context.h"
#include "recommend/reviews.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/pair_source.h"
#include "recommend/trees/split_search.h"

namespace olrank {

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
