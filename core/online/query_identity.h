#pragma once

#include <cstdint>
#include <span>

namespace olrank {

/// Names that a query and its documents keep from round to round, for rankers that remember them.
struct QueryIdentity {
  std::int64_t query = -1;             // −1: nothing has a name
  std::span<const std::int64_t> docs;  // [V]

  bool is_known() const { return query >= 0; }
};

}  // namespace olrank
