#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace olrank {

/// Documents by score, best first; ties by index.
inline std::vector<std::int32_t> slow_order(const std::vector<float>& scores) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace olrank
