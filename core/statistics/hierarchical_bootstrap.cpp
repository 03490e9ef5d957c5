#include "core/statistics/hierarchical_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// The mean of a resample, with replacement, of the same size.
template <class Part, class MeanOfPart>
double redrawn_mean(const std::vector<Part>& parts, RngStream& coins, MeanOfPart&& mean_of_part) {
  // A single part has only one resample.
  if (parts.size() == 1) return mean_of_part(parts.front());
  double sum = 0.0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += mean_of_part(parts[coins.index(static_cast<std::uint32_t>(parts.size()))]);
  }
  return sum / static_cast<double>(parts.size());
}

/// The queries of one seed.
struct Queries {
  const std::vector<double>* values = nullptr;
  double mean = 0.0;
  double deviation = 0.0;  // of a redrawn mean
};

Queries summarised(const std::vector<double>& values) {
  Queries queries{&values, 0.0, 0.0};
  const auto count = static_cast<double>(values.size());
  for (const double value : values) queries.mean += value;
  queries.mean /= count;
  double sum = 0.0;
  for (const double value : values) sum += (value - queries.mean) * (value - queries.mean);
  queries.deviation = std::sqrt(sum) / count;
  return queries;
}

using NestedQueries = std::vector<std::vector<Queries>>;

NestedQueries summarised(const NestedValues& values) {
  NestedQueries nested;
  for (const auto& fold : values) {
    nested.emplace_back();
    for (const auto& seed : fold) nested.back().push_back(summarised(seed));
  }
  return nested;
}

double redrawn_mean(const NestedQueries& nested, RngStream& coins) {
  return redrawn_mean(nested, coins, [&](const auto& fold) {
    return redrawn_mean(fold, coins, [&](const Queries& seed) {
      if (seed.values->size() > kDrawnOneByOne) return seed.mean + seed.deviation * coins.normal();
      return redrawn_mean(*seed.values, coins, [](double query) { return query; });
    });
  });
}

bool something_to_draw(const NestedValues& values) {
  bool several = values.size() > 1;
  for (const auto& fold : values) {
    several = several || fold.size() > 1;
    for (const auto& seed : fold) several = several || seed.size() > 1;
  }
  return several;
}

/// Drops empty folds and seeds.
NestedValues filled(const NestedValues& values) {
  NestedValues kept;
  for (const auto& fold : values) {
    std::vector<std::vector<double>> seeds;
    for (const auto& seed : fold) {
      if (!seed.empty()) seeds.push_back(seed);
    }
    if (!seeds.empty()) kept.push_back(std::move(seeds));
  }
  return kept;
}

}  // namespace

BootstrapInterval hierarchical_bootstrap(const NestedValues& values, PhiloxKey key, std::uint32_t resamples,
                                         double confidence) {
  const NestedValues nested = filled(values);
  if (!something_to_draw(nested) || resamples == 0) return {std::nan(""), std::nan("")};
  const NestedQueries queries = summarised(nested);
  std::vector<double> means(resamples);
  for (std::uint32_t i = 0; i < resamples; ++i) {
    RngStream coins(key, i);
    means[i] = redrawn_mean(queries, coins);
  }
  std::sort(means.begin(), means.end());
  return {sorted_quantile(means, 0.5 - 0.5 * confidence), sorted_quantile(means, 0.5 + 0.5 * confidence)};
}

void ClusteredMean::add(std::int64_t cluster, double value) {
  double& count = sums_.values_in[cluster];
  double& sum = sums_.sum_of[cluster];
  sums_.clusters += count == 0.0 ? 1.0 : 0.0;
  sums_.sum_sum += value * (2.0 * sum + value);
  sums_.sum_values += sum + value * count + value;
  sums_.values_values += 2.0 * count + 1.0;
  count += 1.0;
  sum += value;
  sums_.sum += value;
  sums_.values += 1.0;
}

double ClusteredMean::variance() const {
  if (sums_.clusters < 2.0) return 0.0;
  const double mu = mean();
  const double squares = sums_.sum_sum - 2.0 * mu * sums_.sum_values + mu * mu * sums_.values_values;
  return std::max(0.0, squares) * sums_.clusters / (sums_.clusters - 1.0) / (sums_.values * sums_.values);
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
