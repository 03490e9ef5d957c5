#pragma once

#include <cstdint>
#include <span>

#include "core/online/query_docs.h"

namespace olrank {

/// What a user did with a shown list: all that a ranker ever learns from.
struct Feedback {
  std::uint32_t round = 0;  // from 1
  QueryDocs query;
  std::span<const std::int32_t> shown;   // docs, best first
  std::span<const std::uint8_t> clicks;  // 0 or 1 for each shown
};

}  // namespace olrank
