#pragma once

#include <cstdint>

namespace olrank {

/// Docs of one query, in the order that a user's clicks suggest.
struct PreferencePair {
  std::int32_t winner = 0;
  std::int32_t loser = 0;

  friend bool operator==(const PreferencePair&, const PreferencePair&) = default;
};

}  // namespace olrank
