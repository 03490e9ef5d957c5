#include "core/statistics/slate_estimates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "core/statistics/t_tests.h"

namespace olrank {
namespace {

// A list adds itself, its reward, its weight, that times its reward, and three by a model; then three
// numbers for each rank by prefix, and after all of these the same by item.
enum Total { kLists, kReward, kWeight, kWeighted, kDirectReward, kCorrected, kByExposure, kTotals };
enum AtRank { kRankLists, kRankWeight, kRankWeighted, kAtRank };

/// A Poisson variable of mean 1 from 32 random bits: how many of its cumulative shares the bits exceed.
int poisson_of(std::uint32_t bits) {
  static const auto kShares = [] {
    std::array<std::uint32_t, 12> shares{};
    double mass = std::exp(-1.0);
    double sum = mass;
    for (std::size_t count = 0; count < shares.size(); ++count) {
      shares[count] = static_cast<std::uint32_t>(std::min(sum * 4294967296.0, 4294967295.0));
      mass /= static_cast<double>(count + 1);
      sum += mass;
    }
    return shares;
  }();
  int count = 0;
  while (count < static_cast<int>(kShares.size()) && bits >= kShares[count]) ++count;
  return count;
}

constexpr double kLargestWeight = 1e100;

/// The weight of a prefix that is longer by one rank. Nothing follows a prefix that is never shown.
double extended(double weight, const ComparedList& list, std::int64_t rank) {
  return weight > 0.0 ? weight * (list.target[rank] / list.logged[rank]) : 0.0;
}

}  // namespace

SlateEstimates::SlateEstimates(const Settings& settings)
    : settings_(settings),
      width_(kTotals + 2 * kAtRank * settings.ranks),
      sums_(static_cast<std::size_t>(width_)),
      row_of_(kGroups, -1),
      of_list_(static_cast<std::size_t>(width_)),
      prefixes_(static_cast<std::size_t>(settings.ranks)) {}

bool SlateEstimates::can_weigh(const ComparedList& list) const {
  if (settings_.clip > 0.0 || list.logged.empty()) return true;
  const auto ranks = std::min<std::int64_t>(std::ssize(list.rewards), settings_.ranks);
  double weight = 1.0;
  for (std::int64_t rank = 0; rank < ranks && weight <= kLargestWeight; ++rank)
    weight = extended(weight, list, rank);
  return weight <= kLargestWeight;
}

void SlateEstimates::add(const ComparedList& list) {
  if (!can_weigh(list))
    throw InvalidArgument("The probabilities of this list are so small that its weight is not finite.");
  const auto ranks = std::min<std::int64_t>(std::ssize(list.rewards), settings_.ranks);
  const bool by_item = !list.logged_item.empty() && !list.target_item.empty();
  const bool by_model = !list.expected.empty();
  const bool is_weighed = !list.logged.empty();
  std::fill(of_list_.begin(), of_list_.end(), 0.0);
  const auto clipped = [&](double weight) {
    return settings_.clip > 0.0 ? std::min(weight, settings_.clip) : weight;
  };
  double reward = 0.0;
  double weight = 1.0;
  double of_prefixes = 0.0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    reward += list.rewards[rank];
    if (!is_weighed) continue;
    weight = std::min(extended(weight, list, rank), kLargestWeight);
    const double used = clipped(weight);
    double* at = of_list_.data() + kTotals + kAtRank * rank;
    at[kRankLists] = 1.0;
    at[kRankWeight] = used;
    at[kRankWeighted] = used * list.rewards[rank];
    of_prefixes += at[kRankWeighted];
    if (by_model) of_list_[kCorrected] += used * (list.rewards[rank] - list.expected[rank]);
    if (by_item) {
      double* item = at + kAtRank * settings_.ranks;
      item[kRankLists] = 1.0;
      item[kRankWeight] = clipped(list.target_item[rank] / list.logged_item[rank]);
      item[kRankWeighted] = item[kRankWeight] * list.rewards[rank];
    }
  }
  of_list_[kLists] = 1.0;
  of_list_[kReward] = reward;
  if (is_weighed) of_list_[kWeight] = clipped(weight);
  of_list_[kWeighted] = of_list_[kWeight] * reward;
  if (by_model) {
    of_list_[kDirectReward] = list.direct;
    of_list_[kCorrected] += list.direct;
    of_list_[kByExposure] = list.by_exposure;
  }
  for (std::int64_t rank = 0; rank < ranks && is_weighed; ++rank)
    prefixes_[rank].add(of_list_[kTotals + kAtRank * rank + kRankWeight]);
  if (is_weighed) whole_.add(of_list_[kWeight]);
  ++lists_;
  weighed_lists_ += is_weighed ? 1 : 0;
  lists_by_item_ += by_item ? 1 : 0;
  lists_by_model_ += by_model ? 1 : 0;
  const double before = of_prefixes - mean_;
  mean_ += before / static_cast<double>(lists_);
  spread_ += before * (of_prefixes - mean_);

  const std::int64_t used = kTotals + kAtRank * (by_item ? settings_.ranks + ranks : ranks);
  // Clusters are hashes already, but of what their owners like.
  const std::size_t group = (list.cluster * 0x9E3779B97F4A7C15U) >> 52;
  static_assert(kGroups == std::size_t{1} << 12);
  if (row_of_[group] < 0) {
    row_of_[group] = static_cast<std::int32_t>(std::ssize(groups_) / width_);
    groups_.resize(groups_.size() + static_cast<std::size_t>(width_));
  }
  double* sums = groups_.data() + row_of_[group] * width_;
  for (std::int64_t k = 0; k < used; ++k) {
    sums_[k] += of_list_[k];
    sums[k] += of_list_[k];
  }
}

double SlateEstimates::value_of(SlateEstimator estimator, Sums sums) const {
  const auto over_ranks = [&](bool by_item, bool self) {
    const double* at = sums.data() + kTotals + (by_item ? kAtRank * settings_.ranks : 0);
    double value = 0.0;
    for (std::int64_t rank = 0; rank < settings_.ranks; ++rank, at += kAtRank) {
      if (!self) {
        value += at[kRankWeighted] / sums[kLists];
      } else if (at[kRankWeight] > 0.0) {
        // A rank that few lists have counts as often as they do.
        value += at[kRankWeighted] / at[kRankWeight] * at[kRankLists] / sums[kLists];
      }
    }
    return value;
  };
  switch (estimator) {
    case SlateEstimator::kIps:
      return sums[kWeighted] / sums[kLists];
    case SlateEstimator::kIips:
      return over_ranks(true, false);
    case SlateEstimator::kRips:
      return over_ranks(false, false);
    case SlateEstimator::kSelfIps:
      return sums[kWeight] > 0.0 ? sums[kWeighted] / sums[kWeight] : 0.0;
    case SlateEstimator::kSelfIips:
      return over_ranks(true, true);
    case SlateEstimator::kSelfRips:
      return over_ranks(false, true);
    case SlateEstimator::kDirect:
      return sums[kDirectReward] / sums[kLists];
    case SlateEstimator::kCascadeDoublyRobust:
      return sums[kCorrected] / sums[kLists];
    case SlateEstimator::kInterventionAware:
      return sums[kByExposure] / sums[kLists];
  }
  return 0.0;
}

double SlateEstimates::value_of(const Figure& figure, Sums sums) const {
  const double shown = sums[kReward] / sums[kLists];
  if (!figure.estimator) return shown;
  return value_of(*figure.estimator, sums) - (figure.is_difference ? shown : 0.0);
}

std::vector<Interval> SlateEstimates::intervals_of(std::span<const Figure> figures) const {
  std::vector<Interval> intervals;
  for (const Figure& figure : figures) {
    const double value = value_of(figure, sums_);
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    intervals.push_back({value, has_intervals() ? value : unknown, has_intervals() ? value : unknown});
  }
  if (!has_intervals()) return intervals;
  const auto width = static_cast<std::size_t>(width_);
  std::vector<double> sums(width);
  std::vector<std::vector<double>> drawn(figures.size());
  const PhiloxKey key = make_key({.seed = settings_.seed, .purpose = Purpose::kResampling});
  for (std::int64_t replicate = 1; replicate <= settings_.replicates; ++replicate) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t group = 0; group < kGroups; ++group) {
      if (row_of_[group] < 0) continue;
      RngStream draws(key, static_cast<std::uint32_t>(replicate), static_cast<std::uint32_t>(group));
      const int times = poisson_of(draws.next_bits());
      if (times == 0) continue;
      const double* of_group = groups_.data() + row_of_[group] * width_;
      for (std::size_t k = 0; k < width; ++k) sums[k] += times * of_group[k];
    }
    if (sums[kLists] <= 0.0) continue;
    for (std::size_t f = 0; f < figures.size(); ++f) drawn[f].push_back(value_of(figures[f], sums));
  }
  // Replicates of n groups spread √((n − 1)/n) times as far as estimates do, and know their spread as n
  // numbers do.
  const auto count = std::ssize(groups_) / width_;
  const auto groups = static_cast<double>(count);
  const double reach = std::sqrt(groups / (groups - 1.0)) *
                       student_t_quantile(0.5 + 0.5 * settings_.confidence, groups - 1.0);
  const double tail = 0.5 * std::erfc(reach / std::numbers::sqrt2);
  for (std::size_t f = 0; f < figures.size(); ++f) {
    if (drawn[f].size() < 2) continue;
    std::sort(drawn[f].begin(), drawn[f].end());
    // One more draw comes before the k-th of N with probability k/(N + 1).
    const auto draws = static_cast<double>(drawn[f].size());
    const double share = std::max(tail * (draws + 1.0) - 1.0, 0.0) / (draws - 1.0);
    intervals[f].low = sorted_quantile(drawn[f], share);
    intervals[f].high = sorted_quantile(drawn[f], 1.0 - share);
  }
  return intervals;
}

Interval SlateEstimates::shown() const {
  const Figure shown{std::nullopt};
  return intervals_of(std::span(&shown, 1)).front();
}

std::vector<SlateEstimate> SlateEstimates::estimates() const {
  std::vector<Figure> figures;
  if (lists_ == 0) return {};
  for (const auto& [estimator, name] : EnumNames<SlateEstimator>::values) {
    const bool by_item = estimator == SlateEstimator::kIips || estimator == SlateEstimator::kSelfIips;
    if (by_item && lists_by_item_ < lists_) continue;
    if (goes_by_model(estimator) && lists_by_model_ < lists_) continue;
    if (rests_on_weights(estimator) && !has_weights()) continue;
    figures.push_back({estimator, false});
    figures.push_back({estimator, true});
  }
  const std::vector<Interval> intervals = intervals_of(figures);
  std::vector<SlateEstimate> all;
  for (std::size_t f = 0; f < figures.size(); f += 2)
    all.push_back({*figures[f].estimator, intervals[f], intervals[f + 1]});
  return all;
}

void SlateEstimates::Weights::add(double weight) {
  squares += weight * weight;
  largest = std::max(largest, weight);
  zeros += weight == 0.0 ? 1 : 0;
  ++lists;
}

SlateSupport SlateEstimates::Weights::support(double sum) const {
  const auto count = static_cast<double>(lists);
  return {sum / count, largest, squares > 0.0 ? sum * sum / squares : 0.0,
          static_cast<double>(zeros) / count};
}

std::vector<SlateSupport> SlateEstimates::support() const {
  std::vector<SlateSupport> all;
  for (std::int64_t rank = 0; rank < settings_.ranks && prefixes_[rank].lists > 0; ++rank)
    all.push_back(prefixes_[rank].support(sums_[kTotals + kAtRank * rank + kRankWeight]));
  return all;
}

SlateSupport SlateEstimates::whole_support() const {
  return whole_.support(sums_[kWeight]);
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
