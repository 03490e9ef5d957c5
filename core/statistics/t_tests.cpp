#include "core/statistics/t_tests.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace olrank {
namespace {

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's method.
/// It converges in a few dozen steps where x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostSteps = 10000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= kMostSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1.0) < 1e-15) break;
  }
  return fraction;
}

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
  double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
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

/// A column that keeps less than this share of its squares once the others are taken out depends on them.
constexpr double kLeastShare = 1e-10;

std::vector<double> centred(std::span<const double> values, double& mean) {
  mean = 0.0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value -= mean;
  return result;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

double regularised_incomplete_beta(double a, double b, double x) {
  if (!(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0)) return std::nan("");
  if (x == 0.0 || x == 1.0) return x;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

double student_t_two_sided(double t, double freedom) {
  if (std::isinf(t)) return 0.0;
  return regularised_incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t));
}

double student_t_quantile(double probability, double freedom) {
  if (!(probability > 0.0 && probability < 1.0 && freedom > 0.0)) return std::nan("");
  const double outside = 2.0 * std::fmin(probability, 1.0 - probability);
  double low = 0.0;
  double high = 1.0;
  while (student_t_two_sided(high, freedom) > outside) high *= 2.0;
  // Bisect until no double lies between the bounds.
  for (;;) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (student_t_two_sided(middle, freedom) > outside ? low : high) = middle;
  }
  return probability < 0.5 ? -high : high;
}

double mean_of(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? std::nan("") : sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return std::nan("");
  const double mean = mean_of(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> independent_values(const FoldedValues& values) {
  FoldedValues folds;
  for (const std::vector<double>& fold : values) {
    if (!fold.empty()) folds.push_back(fold);
  }
  if (folds.size() == 1) return folds.front();
  std::vector<double> means;
  means.reserve(folds.size());
  for (const std::vector<double>& fold : folds) means.push_back(mean_of(fold));
  return means;
}

MeanInterval mean_interval(const FoldedValues& values, double confidence) {
  MeanInterval interval;
  std::vector<double> all;
  std::size_t folds = 0;
  for (const std::vector<double>& fold : values) {
    all.insert(all.end(), fold.begin(), fold.end());
    folds += fold.empty() ? 0 : 1;
  }
  interval.values = all.size();
  interval.units = folds > 1 ? folds : all.size();
  interval.over_folds = folds > 1;
  interval.mean = mean_of(all);
  interval.deviation = deviation_of(all);
  interval.half_width = std::nan("");
  if (all.size() > 1) {
    const auto count = static_cast<double>(all.size());
    interval.half_width =
        student_t_quantile(0.5 + 0.5 * confidence, count - 1.0) * interval.deviation / std::sqrt(count);
  }
  return interval;
}

double paired_t_p(std::span<const double> differences) {
  if (differences.size() < 2) return std::nan("");
  return student_t_two_sided(t_of({differences.begin(), differences.end()}),
                             static_cast<double>(differences.size() - 1));
}

SignFlipTest sign_flip_test(std::span<const double> differences, PhiloxKey key) {
  if (differences.size() < 2) return {std::nan(""), true};
  const double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
  const double seen = std::abs(sum) - slack_of(differences);
  if (differences.size() <= kMostExact) return {exact_share(differences, seen), true};
  return {drawn_share(differences, seen, key), false};
}

PairedTest paired_test(const FoldedValues& differences) {
  const std::vector<double> units = independent_values(differences);
  return {.difference = mean_interval(differences),
          .t = units.size() < 2 ? std::nan("") : t_of(units),
          .t_p = paired_t_p(units),
          .flip_p = std::nan("")};
}

PairedTest paired_test(const FoldedValues& differences, PhiloxKey key) {
  PairedTest test = paired_test(differences);
  const SignFlipTest flips = sign_flip_test(independent_values(differences), key);
  test.flip_p = flips.p;
  test.flips_exact = flips.exact;
  return test;
}

double detectable_difference(std::size_t units, double deviation, double level, double power) {
  if (units < 2) return std::nan("");
  const auto count = static_cast<double>(units);
  const double quantiles =
      student_t_quantile(1.0 - 0.5 * level, count - 1.0) + student_t_quantile(power, count - 1.0);
  return quantiles * deviation / std::sqrt(count);
}

std::optional<std::size_t> sample_size(double difference, double deviation, double level, double power) {
  const double wanted = std::abs(difference);
  if (!std::isfinite(wanted) || !std::isfinite(deviation) || wanted == 0.0) return std::nullopt;
  const auto enough = [&](std::size_t units) {
    return detectable_difference(units, deviation, level, power) <= wanted;
  };
  if (!enough(kLargestSample)) return std::nullopt;
  std::size_t too_few = 1;
  std::size_t many = kLargestSample;
  while (many - too_few > 1) {
    const std::size_t middle = (too_few + many) / 2;
    (enough(middle) ? many : too_few) = middle;
  }
  return many;
}

double planning_deviation(double deviation, double freedom) {
  // The 20 % quantile of chi-squared over its degrees of freedom, by Wilson and Hilferty's cube root.
  constexpr double kNormal = -0.841621;
  const double ninth = 2.0 / (9.0 * freedom);
  return deviation / std::pow(1.0 - ninth + kNormal * std::sqrt(ninth), 1.5);
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (!std::isnan(p_values[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  double largest = 0.0;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto left = static_cast<double>(order.size() - place);
    largest = std::max(largest, std::min(1.0, left * p_values[order[place]]));
    adjusted[order[place]] = largest;
  }
  return adjusted;
}

std::vector<double> fit_least_squares(std::span<const double> y,
                                      const std::vector<std::vector<double>>& columns) {
  const std::size_t count = columns.size();
  std::vector<double> undecided(count + 1, std::nan(""));
  if (y.size() < count + 1) return undecided;
  double y_mean = 0.0;
  std::vector<double> rest = centred(y, y_mean);
  // Gram–Schmidt, from which the triangular system R c = Qᵀy follows.
  std::vector<std::vector<double>> basis;
  std::vector<std::vector<double>> shares(count, std::vector<double>(count, 0.0));
  std::vector<double> means(count);
  std::vector<double> targets(count);
  for (std::size_t k = 0; k < count; ++k) {
    assert(columns[k].size() == y.size());
    std::vector<double> column = centred(columns[k], means[k]);
    const double whole = dot(column, column);
    for (std::size_t j = 0; j < k; ++j) {
      shares[j][k] = dot(basis[j], column);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] -= shares[j][k] * basis[j][i];
    }
    const double left = dot(column, column);
    if (!(left > kLeastShare * whole)) return undecided;
    shares[k][k] = std::sqrt(left);
    for (double& value : column) value /= shares[k][k];
    targets[k] = dot(column, rest);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= targets[k] * column[i];
    basis.push_back(std::move(column));
  }
  std::vector<double> coefficients(count + 1);
  for (std::size_t k = count; k-- > 0;) {
    double value = targets[k];
    for (std::size_t j = k + 1; j < count; ++j) value -= shares[k][j] * coefficients[j + 1];
    coefficients[k + 1] = value / shares[k][k];
  }
  coefficients[0] = y_mean;
  for (std::size_t k = 0; k < count; ++k) coefficients[0] -= coefficients[k + 1] * means[k];
  return coefficients;
}

double curve_area(std::span<const double> rounds, std::span<const double> values) {
  assert(rounds.size() == values.size());
  if (values.empty()) return std::nan("");
  if (values.size() == 1) return values.front();
  double area = 0.0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    area += 0.5 * (rounds[i] - rounds[i - 1]) * (values[i] + values[i - 1]);
  }
  return area / (rounds.back() - rounds.front());
}

}  // namespace olrank
