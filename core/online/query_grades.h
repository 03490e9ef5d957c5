#pragma once

#include <cstdint>
#include <span>

namespace olrank {

/// The true grades of a query's documents. A type of its own, so that no ranker is handed one by mistake.
struct QueryGrades {
  std::span<const std::uint8_t> of_doc;  // [V]
};

}  // namespace olrank
