#include "core/statistics/clustered_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace olrank {

void ClusteredMean::add(std::int64_t cluster, double value) {
  double& count = values_in_[cluster];
  double& sum = sum_of_[cluster];
  clusters_ += count == 0.0 ? 1 : 0;
  sum_sum_ += value * (2.0 * sum + value);
  sum_values_ += sum + value * count + value;
  values_values_ += 2.0 * count + 1.0;
  count += 1.0;
  sum += value;
  sum_ += value;
  ++values_;
}

void ClusteredMean::clear() {
  *this = ClusteredMean(std::ssize(values_in_));
}

double ClusteredMean::variance() const {
  if (clusters_ < 2) return 0.0;
  const double mu = mean();
  const double squares = sum_sum_ - 2.0 * mu * sum_values_ + mu * mu * values_values_;
  const auto clusters = static_cast<double>(clusters_);
  const auto values = static_cast<double>(values_);
  return std::max(0.0, squares) * clusters / (clusters - 1.0) / (values * values);
}

void ClusteredMean::save(StateWriter& state, std::string_view name) const {
  state.put(fmt::format("{}.values_in", name), values_in_);
  state.put(fmt::format("{}.sum_of", name), sum_of_);
  state.put(fmt::format("{}.counts", name), std::vector<std::int64_t>{values_, clusters_});
  state.put(fmt::format("{}.sums", name), std::vector<double>{sum_, sum_sum_, sum_values_, values_values_});
}

void ClusteredMean::load(StateReader& state, std::string_view name) {
  values_in_ = state.get<double>(fmt::format("{}.values_in", name));
  sum_of_ = state.get<double>(fmt::format("{}.sum_of", name));
  const auto counts = state.get<std::int64_t>(fmt::format("{}.counts", name));
  const auto sums = state.get<double>(fmt::format("{}.sums", name));
  if (sum_of_.size() != values_in_.size() || counts.size() != 2 || sums.size() != 4)
    state.fail("The sums of an arm do not fit together.");
  values_ = counts[0];
  clusters_ = counts[1];
  sum_ = sums[0];
  sum_sum_ = sums[1];
  sum_values_ = sums[2];
  values_values_ = sums[3];
}

Interval anytime_interval(double value, double variance, double time, double confidence) {
  // The sequence is tightest, 1.5 times as wide as an interval for one time, after 4 to 20 times as many.
  constexpr double kPrior = 100.0;
  const double alpha = 1.0 - confidence;
  const double whole = time + kPrior;
  const double width = std::sqrt(variance * whole / time * std::log(whole / (kPrior * alpha * alpha)));
  return {value, value - width, value + width};
}

Interval anytime_difference(const ClusteredMean& one, const ClusteredMean& other, double confidence) {
  const double time =
      4.0 / (1.0 / static_cast<double>(one.values()) + 1.0 / static_cast<double>(other.values()));
  return anytime_interval(one.mean() - other.mean(), one.variance() + other.variance(), time, confidence);
}

}  // namespace olrank
