#pragma once

#include <cstdint>

#include "core/math/host_device.h"

namespace olrank {

/// Whether a document comes before another in the order by score: descending, ties by index.
OLRANK_HOST_DEVICE inline bool comes_before(float score, std::int64_t index, float other_score,
                                            std::int64_t other_index) {
  return score > other_score || (score == other_score && index < other_index);
}

OLRANK_HOST_DEVICE inline bool comes_before(double score, std::int64_t index, double other_score,
                                            std::int64_t other_index) {
  return score > other_score || (score == other_score && index < other_index);
}

}  // namespace olrank
