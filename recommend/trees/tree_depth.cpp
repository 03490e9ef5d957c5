#include "recommend/trees/tree_depth.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace olrank {

void check_tree_depth(std::string_view key, std::int64_t depth, const RatingRows& ratings,
                      std::string_view what) {
  std::int64_t rows = 0;
  for (std::int64_t row = 0; row < ratings.rows(); ++row) rows += ratings.count(row) > 0 ? 1 : 0;
  const std::int64_t most = std::max<std::int64_t>(rows - 1, 0);
  if (depth <= most) return;
  throw InvalidArgument(
      fmt::format("A tree of depth {} is deeper than the data allows, because every question must separate "
                  "somebody: of the {}, {} have training reviews; set {} to at most {}.",
                  depth, what, rows, key, most));
}

}  // namespace olrank
