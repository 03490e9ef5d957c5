#pragma once

#include <cstdint>

namespace olrank {

/// Chooses the query of each round.
class QuerySource {
 public:
  QuerySource() = default;
  virtual ~QuerySource() = default;
  QuerySource(const QuerySource&) = delete;
  QuerySource& operator=(const QuerySource&) = delete;

  /// The number of a query of the training part; a pure function of `round`, which counts from 1.
  virtual std::int64_t query_of(std::uint32_t round) const = 0;
};

}  // namespace olrank
