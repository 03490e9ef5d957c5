#pragma once

#include <cstdint>

#include "core/online/query_source.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Every round asks any of the queries, each with the same probability.
class UniformQueries : public QuerySource {
 public:
  /// `key` is the trial's key of Purpose::kQuery. Throws InvalidArgument without a query.
  UniformQueries(PhiloxKey key, std::int64_t queries);

  std::int64_t query_of(std::uint32_t round) const override;

 private:
  PhiloxKey key_;
  std::uint32_t queries_;
};

}  // namespace olrank
