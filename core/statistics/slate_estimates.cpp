#include "core/statistics/slate_estimates.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "core/statistics/quantile.h"

namespace olrank {
namespace {

// What a list adds: itself, its reward, its weight, that times its reward; then four numbers for each rank.
enum Total { kLists, kReward, kWeight, kWeighted, kTotals };
enum AtRank { kPrefixWeight, kPrefixWeighted, kItemWeight, kItemWeighted, kAtRank };

/// A Poisson variable of mean 1 from 32 random bits.
double poisson_of(std::uint32_t bits) {
  double tail = 1.0 - (static_cast<double>(bits) + 0.5) / 4294967296.0;
  double mass = std::exp(-1.0);
  double count = 0.0;
  for (double sum = mass; 1.0 - tail > sum && count < 16.0; sum += mass) mass /= ++count;
  return count;
}

}  // namespace

SlateEstimates::SlateEstimates(const Settings& settings)
    : settings_(settings),
      width_(kTotals + kAtRank * settings.ranks),
      sums_(static_cast<std::size_t>((settings.replicates + 1) * width_)),
      of_list_(static_cast<std::size_t>(width_)),
      squares_(static_cast<std::size_t>(settings.ranks)),
      largest_(static_cast<std::size_t>(settings.ranks)),
      zeros_(static_cast<std::size_t>(settings.ranks)),
      with_rank_(static_cast<std::size_t>(settings.ranks)) {}

void SlateEstimates::add(const ComparedList& list) {
  const auto ranks = std::min<std::int64_t>(std::ssize(list.rewards), settings_.ranks);
  const bool by_item = !list.logged_item.empty() && !list.target_item.empty();
  std::fill(of_list_.begin(), of_list_.end(), 0.0);
  const auto clipped = [&](double weight) {
    return settings_.clip > 0.0 ? std::min(weight, settings_.clip) : weight;
  };
  double reward = 0.0;
  double weight = 1.0;
  double of_prefixes = 0.0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    reward += list.rewards[rank];
    weight *= list.target[rank] / list.logged[rank];
    const double used = clipped(weight);
    double* at = of_list_.data() + kTotals + kAtRank * rank;
    at[kPrefixWeight] = used;
    at[kPrefixWeighted] = used * list.rewards[rank];
    of_prefixes += at[kPrefixWeighted];
    if (by_item) {
      at[kItemWeight] = clipped(list.target_item[rank] / list.logged_item[rank]);
      at[kItemWeighted] = at[kItemWeight] * list.rewards[rank];
    }
    squares_[rank] += used * used;
    largest_[rank] = std::max(largest_[rank], used);
    zeros_[rank] += used == 0.0 ? 1 : 0;
    ++with_rank_[rank];
  }
  of_list_[kLists] = 1.0;
  of_list_[kReward] = reward;
  of_list_[kWeight] = clipped(weight);
  of_list_[kWeighted] = of_list_[kWeight] * reward;
  ++lists_;
  lists_by_item_ += by_item ? 1 : 0;
  const double before = of_prefixes - mean_;
  mean_ += before / static_cast<double>(lists_);
  spread_ += before * (of_prefixes - mean_);

  for (std::int64_t k = 0; k < width_; ++k) sums_[k] += of_list_[k];
  RngStream draws(make_key({.seed = settings_.seed, .purpose = Purpose::kResampling, .fold = list.cluster}),
                  0);
  for (std::int64_t replicate = 1; replicate <= settings_.replicates; ++replicate) {
    const double times = poisson_of(draws.next_bits());
    if (times == 0.0) continue;
    double* sums = sums_.data() + replicate * width_;
    for (std::int64_t k = 0; k < width_; ++k) sums[k] += times * of_list_[k];
  }
}

double SlateEstimates::value_of(SlateEstimator estimator, Sums sums) const {
  const auto over_ranks = [&](AtRank weighted, int weight) {
    double value = 0.0;
    for (std::int64_t rank = 0; rank < settings_.ranks; ++rank) {
      const double* at = sums.data() + kTotals + kAtRank * rank;
      const double divisor = weight < 0 ? sums[kLists] : at[weight];
      if (divisor <= 0.0) continue;
      // A rank that few lists have counts as often as they do.
      const double share =
          weight < 0 ? 1.0 : static_cast<double>(with_rank_[rank]) / static_cast<double>(lists_);
      value += share * at[weighted] / divisor;
    }
    return value;
  };
  switch (estimator) {
    case SlateEstimator::kIps:
      return sums[kWeighted] / sums[kLists];
    case SlateEstimator::kIips:
      return over_ranks(kItemWeighted, -1);
    case SlateEstimator::kRips:
      return over_ranks(kPrefixWeighted, -1);
    case SlateEstimator::kSelfIps:
      return sums[kWeight] > 0.0 ? sums[kWeighted] / sums[kWeight] : 0.0;
    case SlateEstimator::kSelfIips:
      return over_ranks(kItemWeighted, kItemWeight);
    case SlateEstimator::kSelfRips:
      return over_ranks(kPrefixWeighted, kPrefixWeight);
  }
  return 0.0;
}

template <class Figure>
Interval SlateEstimates::interval_of(const Figure& figure) const {
  Interval interval;
  interval.value = figure(sums_of(0));
  std::vector<double> drawn;
  for (std::int64_t replicate = 1; replicate <= settings_.replicates; ++replicate) {
    if (sums_of(replicate)[kLists] > 0.0) drawn.push_back(figure(sums_of(replicate)));
  }
  interval.low = interval.high = interval.value;
  if (drawn.size() < 2) return interval;
  std::sort(drawn.begin(), drawn.end());
  const double tail = (1.0 - settings_.confidence) / 2.0;
  interval.low = sorted_quantile(drawn, tail);
  interval.high = sorted_quantile(drawn, 1.0 - tail);
  return interval;
}

Interval SlateEstimates::shown() const {
  return interval_of([](Sums sums) { return sums[kReward] / sums[kLists]; });
}

std::vector<SlateEstimate> SlateEstimates::estimates() const {
  std::vector<SlateEstimate> all;
  if (lists_ == 0) return all;
  for (const auto& [estimator, name] : EnumNames<SlateEstimator>::values) {
    const bool by_item = estimator == SlateEstimator::kIips || estimator == SlateEstimator::kSelfIips;
    if (by_item && lists_by_item_ < lists_) continue;
    const auto value = [this, chosen = estimator](Sums sums) { return value_of(chosen, sums); };
    all.push_back({estimator, interval_of(value),
                   interval_of([&](Sums sums) { return value(sums) - sums[kReward] / sums[kLists]; })});
  }
  return all;
}

std::vector<SlateSupport> SlateEstimates::support() const {
  std::vector<SlateSupport> all;
  for (std::int64_t rank = 0; rank < settings_.ranks && with_rank_[rank] > 0; ++rank) {
    const auto count = static_cast<double>(with_rank_[rank]);
    const double sum = sums_[kTotals + kAtRank * rank + kPrefixWeight];
    all.push_back({sum / count, largest_[rank], squares_[rank] > 0.0 ? sum * sum / squares_[rank] : 0.0,
                   static_cast<double>(zeros_[rank]) / count});
  }
  return all;
}

double SlateEstimates::lower_bound() const {
  if (settings_.clip <= 0.0)
    throw InvalidArgument("A guaranteed bound needs a largest weight: give --clip.");
  if (lists_ < 2) return 0.0;
  const auto count = static_cast<double>(lists_);
  const double range = settings_.clip * static_cast<double>(settings_.ranks);
  const double log_term = std::log(2.0 / (1.0 - settings_.confidence));
  const double variance = spread_ / (count - 1.0);
  return mean_ - std::sqrt(2.0 * variance * log_term / count) -
         7.0 * range * log_term / (3.0 * (count - 1.0));
}

}  // namespace olrank
