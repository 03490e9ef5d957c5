#include "core/statistics/paired_test.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/statistics/student_t.h"

namespace olrank {
namespace {

constexpr std::size_t kMostExact = 16;
constexpr std::uint32_t kDraws = 9999;

double t_of(const std::vector<double>& differences) {
  const double mean = mean_of(differences);
  const double deviation = deviation_of(differences);
  if (mean == 0.0) return 0.0;
  return mean / (deviation / std::sqrt(static_cast<double>(differences.size())));
}

/// Sums this close are treated as equal: they differ by rounding only.
double slack_of(std::span<const double> differences) {
  double sum = 0.0;
  for (const double difference : differences) sum += std::abs(difference);
  return 1e-10 * sum;
}

double exact_share(std::span<const double> differences, double seen) {
  // The last sign is fixed: flipping all signs does not change the distance from 0. Gray code: one flip per
  // step.
  const std::uint32_t patterns = 1U << (differences.size() - 1);
  double sum = 0.0;
  for (const double difference : differences) sum += difference;
  std::uint32_t as_far = std::abs(sum) >= seen ? 1 : 0;
  std::uint32_t flipped = 0;
  for (std::uint32_t step = 1; step < patterns; ++step) {
    const int place = std::countr_zero(step);
    flipped ^= 1U << place;
    const double difference = differences[place];
    sum += (flipped >> place & 1U) != 0 ? -2.0 * difference : 2.0 * difference;
    as_far += std::abs(sum) >= seen ? 1 : 0;
  }
  return static_cast<double>(as_far) / static_cast<double>(patterns);
}

double drawn_share(std::span<const double> differences, double seen, PhiloxKey key) {
  std::uint32_t as_far = 1;  // the observed pattern
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    RngStream coins(key, draw);
    double sum = 0.0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      sum += coins.next_bits() >> 31 != 0 ? -differences[i] : differences[i];
    }
    as_far += std::abs(sum) >= seen ? 1 : 0;
  }
  return static_cast<double>(as_far) / static_cast<double>(kDraws + 1);
}

}  // namespace

double paired_t_p(std::span<const double> differences) {
  if (differences.size() < 2) return std::nan("");
  return student_t_two_sided(t_of({differences.begin(), differences.end()}),
                             static_cast<double>(differences.size() - 1));
}

SignFlipTest sign_flip_test(std::span<const double> differences, PhiloxKey key) {
  if (differences.size() < 2) return {std::nan(""), true};
  double sum = 0.0;
  for (const double difference : differences) sum += difference;
  const double seen = std::abs(sum) - slack_of(differences);
  if (differences.size() <= kMostExact) return {exact_share(differences, seen), true};
  return {drawn_share(differences, seen, key), false};
}

PairedTest paired_test(const FoldedValues& differences) {
  const std::vector<double> units = independent_values(differences);
  PairedTest test;
  test.difference = mean_interval(differences);
  test.t = units.size() < 2 ? std::nan("") : t_of(units);
  test.t_p = paired_t_p(units);
  test.flip_p = std::nan("");
  return test;
}

PairedTest paired_test(const FoldedValues& differences, PhiloxKey key) {
  PairedTest test = paired_test(differences);
  const SignFlipTest flips = sign_flip_test(independent_values(differences), key);
  test.flip_p = flips.p;
  test.flips_exact = flips.exact;
  return test;
}

}  // namespace olrank
