#pragma once

#include <cstdint>
#include <vector>

namespace olrank {

/// Docs of one query, in the order that a user's clicks suggest.
struct PreferencePair {
  std::int32_t winner = 0;
  std::int32_t loser = 0;

  friend bool operator==(const PreferencePair&, const PreferencePair&) = default;
};

/// Pairs `first` to `first + count` of rows that hold winner and loser in turn.
inline std::vector<PreferencePair> pairs_of_rows(std::int64_t first, std::int64_t count) {
  std::vector<PreferencePair> pairs;
  pairs.reserve(count);
  for (std::int64_t pair = first; pair < first + count; ++pair)
    pairs.push_back({static_cast<std::int32_t>(2 * pair), static_cast<std::int32_t>(2 * pair + 1)});
  return pairs;
}

}  // namespace olrank
