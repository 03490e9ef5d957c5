#pragma once

#include <cstdint>

#include "core/online/query_source.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Draws a query uniformly in every round.
class UniformQueries : public QuerySource {
 public:
  /// `key` is the trial's key for Purpose::kQuery. Throws InvalidArgument if there are no queries.
  UniformQueries(PhiloxKey key, std::int64_t queries);

  std::int64_t query_of(std::uint32_t round) const override;

 private:
  PhiloxKey key_;
  std::uint32_t queries_;
};

}  // namespace olrank
