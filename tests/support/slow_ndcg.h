#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace olrank {

/// NDCG@k of a list of grades by its textbook formula; 0 without a relevant document.
inline double slow_ndcg(const std::vector<int>& grades_in_order, std::size_t cutoff = SIZE_MAX) {
  const auto dcg = [&](const std::vector<int>& grades) {
    double sum = 0.0;
    for (std::size_t rank = 0; rank < std::min(cutoff, grades.size()); ++rank)
      sum += (std::pow(2.0, grades[rank]) - 1.0) / std::log2(static_cast<double>(rank) + 2.0);
    return sum;
  };
  std::vector<int> ideal = grades_in_order;
  std::sort(ideal.rbegin(), ideal.rend());
  return dcg(ideal) > 0.0 ? dcg(grades_in_order) / dcg(ideal) : 0.0;
}

}  // namespace olrank
