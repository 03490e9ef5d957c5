#pragma once

#include <cstdint>
#include <span>

#include "core/online/query_docs.h"

namespace olrank {

/// A user's clicks on a shown list: all that a ranker learns from.
struct Feedback {
  std::uint32_t round = 0;  // from 1
  QueryDocs query;
  std::span<const std::int32_t> shown;   // docs, best first
  std::span<const std::uint8_t> clicks;  // 0 or 1 per shown document
  std::span<const double> rewards{};     // what each click is worth, per shown document; empty: 1
};

}  // namespace olrank
