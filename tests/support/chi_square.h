#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace olrank {

/// Pearson's statistic of counts against exact probabilities, and how many degrees it has. Cells in which
/// fewer than 25 are expected are counted as one, so that the limit law holds in its tail.
struct ChiSquare {
  double statistic = 0.0;
  int degrees = 0;
  bool impossible_seen = false;  // something of probability 0 happened

  /// Above this with probability at most e^-x (Laurent and Massart, "Adaptive estimation of a quadratic
  /// functional by model selection", Annals of Statistics 2000, lemma 1).
  double bound(double x) const { return degrees + 2.0 * std::sqrt(degrees * x) + 2.0 * x; }
};

/// e^-kTail = 1e-10: the false-alarm rate of one statistic. A test of fewer than 10,000 of them stays below
/// 1e-6 in total.
inline constexpr double kTail = 23.03;

inline ChiSquare chi_square(std::span<const std::int64_t> counts, std::span<const double> probabilities) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  ChiSquare result;
  int cells = 0;
  double rare_expected = 0.0;
  double rare_count = 0.0;
  const auto add_cell = [&](double count, double expected) {
    result.statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(total);
    const auto count = static_cast<double>(counts[i]);
    if (probabilities[i] <= 0.0) {
      result.impossible_seen = result.impossible_seen || counts[i] > 0;
    } else if (expected < 25.0) {
      rare_expected += expected;
      rare_count += count;
    } else {
      add_cell(count, expected);
    }
  }
  // A handful of rare cells has no limit law; Poisson tails at 25 have, near enough.
  if (rare_expected >= 25.0) add_cell(rare_count, rare_expected);
  result.degrees = cells > 0 ? cells - 1 : 0;
  return result;
}

}  // namespace olrank
