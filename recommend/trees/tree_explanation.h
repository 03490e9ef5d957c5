#pragma once

#include <cstdint>
#include <vector>

#include "recommend/trees/tree_model.h"

namespace olrank {

/// A feature that speaks for an item, with the levels and branches of both paths on which it was asked.
struct PathReason {
  std::int32_t feature = 0;
  std::optional<TreeStep> user;  // empty where the user's path does not know the feature
  std::optional<TreeStep> item;
  bool shared() const { return user && item; }
};

/// The reasons why an item is for a user: features on both paths first, then those on one, each group from
/// the leaves upwards. Answers "unknown" give no reason. Jia, Toward Reliable Decision-making in
/// Information Systems, PhD thesis, UVA 2022, §4.2.3.
std::vector<PathReason> path_reasons(const TreeModel& model, std::int32_t user_leaf,
                                     std::int32_t item_leaf);

inline constexpr std::size_t kMostReasons = 3;

/// Up to kMostReasons reasons as sentences; all of them, and both paths with every predicate and value, as
/// JSON.
Explanation explain_by_paths(const TreeModel& model, std::int64_t user, std::int64_t item,
                             const ReviewNames& names);

}  // namespace olrank
