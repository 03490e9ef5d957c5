#pragma once

#include <cstdint>

namespace olrank {

/// The two groups of documents that exposure is shared between.
enum class DocGroup : std::uint8_t { kA = 0, kB = 1 };

constexpr char letter_of(DocGroup group) {
  return group == DocGroup::kA ? 'A' : 'B';
}

}  // namespace olrank
