#pragma once

#include <cmath>
#include <span>

namespace olrank {

/// Euclidean norm.
inline double norm(std::span<const double> vector) {
  double sum = 0.0;
  for (const double value : vector) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace olrank
