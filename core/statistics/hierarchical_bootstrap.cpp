#include "core/statistics/hierarchical_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// The mean over as many draws with replacement as there are parts.
template <class Part, class MeanOfPart>
double redrawn_mean(const std::vector<Part>& parts, RngStream& coins, MeanOfPart&& mean_of_part) {
  // A single part leaves nothing to draw.
  if (parts.size() == 1) return mean_of_part(parts.front());
  double sum = 0.0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += mean_of_part(parts[coins.index(static_cast<std::uint32_t>(parts.size()))]);
  }
  return sum / static_cast<double>(parts.size());
}

double redrawn_mean(const NestedValues& values, RngStream& coins) {
  return redrawn_mean(values, coins, [&](const auto& fold) {
    return redrawn_mean(fold, coins, [&](const auto& seed) {
      return redrawn_mean(seed, coins, [](double query) { return query; });
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

double quantile(const std::vector<double>& sorted, double probability) {
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Without folds and seeds that hold nothing.
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
  std::vector<double> means(resamples);
  for (std::uint32_t i = 0; i < resamples; ++i) {
    RngStream coins(key, i);
    means[i] = redrawn_mean(nested, coins);
  }
  std::sort(means.begin(), means.end());
  return {quantile(means, 0.5 - 0.5 * confidence), quantile(means, 0.5 + 0.5 * confidence)};
}

}  // namespace olrank
