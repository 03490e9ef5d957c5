#pragma once

#include <cstdint>
#include <span>

namespace olrank {

/// The true grades of a query's documents. A separate type, so that no ranker gets grades by mistake.
struct QueryGrades {
  std::span<const std::uint8_t> of_doc;  // [V]
};

}  // namespace olrank
