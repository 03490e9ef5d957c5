#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

namespace olrank {

/// A χ² variable exceeds the first with probability at most e^-tail, and falls below the second with at
/// most that (Laurent and Massart, "Adaptive estimation of a quadratic functional by model selection",
/// Annals of Statistics 2000, lemma 1).
inline double chi_square_bound(double degrees, double tail) {
  return degrees + 2.0 * std::sqrt(degrees * tail) + 2.0 * tail;
}
inline double chi_square_lower_bound(double degrees, double tail) {
  return degrees - 2.0 * std::sqrt(degrees * tail);
}

/// Pearson's statistic of counts against exact probabilities, and how many degrees it has. Cells in which
/// fewer than 25 are expected are counted as one, so that the limit law holds in its tail.
struct ChiSquare {
  double statistic = 0.0;
  int degrees = 0;
  bool impossible_seen = false;  // something of probability 0 happened

  double bound(double tail) const { return chi_square_bound(degrees, tail); }
};

/// e^-kTail = 1e-10: the false-alarm rate of one statistic. A test of fewer than 10,000 of them stays below
/// 1e-6 in total.
inline constexpr double kTail = 23.03;

/// e^-kMillionth = 1e-6, for statistics that are computed a few times only.
inline constexpr double kMillionth = 13.82;

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

/// Whether the counts are what these probabilities make likely; false alarms have probability e^-tail.
inline testing::AssertionResult counts_follow(std::span<const std::int64_t> counts,
                                              std::span<const double> probabilities,
                                              double tail = kMillionth) {
  const ChiSquare chi = chi_square(counts, probabilities);
  if (!chi.impossible_seen && chi.statistic <= chi.bound(tail)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "chi-square " << chi.statistic << " with " << chi.degrees
                                     << " degrees of freedom, bound " << chi.bound(tail)
                                     << (chi.impossible_seen ? "; an outcome of probability 0 occurred"
                                                             : "");
}
inline testing::AssertionResult counts_are_even(std::span<const std::int64_t> counts,
                                                double tail = kMillionth) {
  const std::vector<double> even(counts.size(), 1.0 / static_cast<double>(counts.size()));
  return counts_follow(counts, even, tail);
}

/// Whether `draw(round, order)` gives each order of 0, 1, … as often as `probability_of(order)` says.
template <class ProbabilityOf, class Draw>
testing::AssertionResult orders_follow(std::size_t docs, std::uint32_t rounds,
                                       const ProbabilityOf& probability_of, const Draw& draw) {
  std::vector<std::int32_t> order(docs);
  std::iota(order.begin(), order.end(), 0);
  std::map<std::vector<std::int32_t>, std::int64_t> seen;
  std::vector<double> probabilities;
  do {
    seen[order] = 0;
    probabilities.push_back(probability_of(order));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1.0, 1e-12);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    draw(round, order);
    ++seen.at(order);
  }
  std::vector<std::int64_t> counts;
  for (const auto& [list, count] : seen) counts.push_back(count);
  return counts_follow(counts, probabilities);
}

}  // namespace olrank
