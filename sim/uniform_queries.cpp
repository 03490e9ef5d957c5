#include "sim/uniform_queries.h"

#include <fmt/format.h>

#include <limits>

#include "core/error.h"

namespace olrank {

UniformQueries::UniformQueries(PhiloxKey key, std::int64_t queries)
    : key_(key), queries_(static_cast<std::uint32_t>(queries)) {
  if (queries >= 1 && queries <= std::numeric_limits<std::uint32_t>::max()) return;
  throw InvalidArgument(fmt::format(
      "Rounds cannot be played on {} queries; the training part needs at least one and at most 2^32 - 1.",
      queries));
}

std::int64_t UniformQueries::query_of(std::uint32_t round) const {
  return RngStream(key_, round).index(queries_);
}

}  // namespace olrank
