#include "sim/uniform_queries.h"

#include <fmt/format.h>

#include <limits>

#include "core/error.h"

namespace olrank {

UniformQueries::UniformQueries(PhiloxKey key, std::int64_t queries)
    : key_(key), queries_(static_cast<std::uint32_t>(queries)) {
  if (queries >= 1 && queries <= std::numeric_limits<std::uint32_t>::max()) return;
  throw InvalidArgument(
      fmt::format("The training part must have between 1 and 2^32 - 1 queries, not {}.", queries));
}

std::int64_t UniformQueries::query_of(std::uint32_t round) const {
  return RngStream(key_, round).index(queries_);
}

}  // namespace olrank
