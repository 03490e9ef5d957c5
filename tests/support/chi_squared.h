#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace olrank {

/// The 0.999999 quantile of χ² with f degrees of freedom is below f + 2√(13.82 f) + 27.64 (Laurent and
/// Massart 2000, Lemma 1, with x = 13.82): a test against it has false alarms under 1e-6.
inline double chi_squared_bound(double freedom) {
  return freedom + 2 * std::sqrt(freedom * 13.82) + 2 * 13.82;
}

/// χ² of `counts` against what `probabilities`, which sum to 1, let expect of as many draws.
inline double chi_squared(std::span<const double> counts, std::span<const double> probabilities) {
  double draws = 0.0;
  for (const double count : counts) draws += count;
  double sum = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * probabilities[i];
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

}  // namespace olrank
