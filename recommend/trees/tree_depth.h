#pragma once

#include <cstdint>
#include <string_view>

#include "recommend/training_data.h"

namespace olrank {

/// Every question separates somebody, so that a tree has fewer levels than there are rows with a rating.
/// Throws InvalidArgument for a greater `depth`, of the key `key`; `what` are the rows, "users" or "items".
void check_tree_depth(std::string_view key, std::int64_t depth, const RatingRows& ratings,
                      std::string_view what);

}  // namespace olrank
