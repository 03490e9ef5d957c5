#include "models/clickgp/click_ranking.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/fair/exposure.h"
#include "models/skeleton/belief.h"

namespace olrank {
namespace {

constexpr std::uint64_t kMostModels = 3;

double normal_share_below(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

}  // namespace

ClickRanking::ClickRanking(const RankerSettings& settings, const TrialKeys& keys, std::int64_t cutoff)
    : fair_(settings.fair),
      level_(1.0 - settings.explore.delta),
      tie_key_(keys.key(Purpose::kList)),
      cutoff_(cutoff),
      list_(settings.explore, settings.fair, keys, cutoff) {
  for (std::uint64_t model = 0; model < kMostModels; ++model)
    draw_keys_.push_back(keys.key(Purpose::kScores, model));
}

void ClickRanking::look(const ClickState& state, FeatureMatrix docs, const QueryIdentity& identity) {
  state.beliefs.back().features().see(docs, now_scaled_);
  // A list is made and then learned from, mostly with nothing new between.
  LookedAt now = {state.learned, identity.query, {identity.docs.begin(), identity.docs.end()}};
  if (now == looked_at_ && now_scaled_ == scaled_) return;
  looked_at_ = std::move(now);
  std::swap(scaled_, now_scaled_);
  views_.resize(state.beliefs.size());
  find_rows(state);
  const KnownQuery* known = identity.is_known() ? state.memory.find(identity.query) : nullptr;
  places_.assign(docs.docs, -1);
  if (known != nullptr) {
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) places_[doc] = known->place_of(identity.docs[doc]);
  }
  const double faded = known == nullptr ? 1.0 : known->faded(state.learned, state.half_life);
  std::vector<std::vector<double>> of_models;
  for (std::size_t model = 0; model < state.beliefs.size(); ++model) {
    state.beliefs[model].look(known, model, places_, faded, views_[model]);
    of_models.push_back(views_[model].scores);
  }
  average(state, of_models, scores_);
}

void ClickRanking::find_rows(const ClickState& state) {
  const ClickFeatures& widest = state.beliefs.back().features();
  const std::int64_t width = widest.columns();
  const std::int64_t docs = std::ssize(scaled_) / widest.seen();
  AlignedVector<double>& rows = views_.back().rows;
  rows.resize(docs * width);
  means_.resize(widest.centred());
  widest.expand_centred(scaled_, means_, rows);
  for (std::size_t model = 0; model + 1 < views_.size(); ++model) {
    const std::int64_t columns = state.beliefs[model].columns();
    views_[model].rows.resize(docs * columns);
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      const auto row = views_[model].rows.begin() + doc * columns;
      std::copy_n(rows.begin() + doc * width, columns, row);
      if (widest.start() != nullptr) row[columns - 1] = rows[doc * width + widest.centred()];
    }
  }
}

void ClickRanking::average(const ClickState& state, const std::vector<std::vector<double>>& of_models,
                           std::vector<double>& scores) const {
  scores.assign(of_models.front().size(), 0.0);
  for (std::size_t model = 0; model < of_models.size(); ++model) {
    double mean = 0.0;
    for (const double score : of_models[model]) mean += score;
    mean /= static_cast<double>(std::max<std::size_t>(scores.size(), 1));
    for (std::size_t doc = 0; doc < scores.size(); ++doc)
      scores[doc] += state.weights[model] * (of_models[model][doc] - mean);
  }
  for (const double score : scores) {
    if (std::isfinite(score)) continue;
    throw NumericError("A score of a click model was not finite: check that all features are.");
  }
}

RankedList ClickRanking::make(ExecutionContext& context, const ClickState& state, std::uint32_t round,
                              const FairRound* fair, bool explore) {
  narrow_scores_.assign(scores_.begin(), scores_.end());
  order_by_score(context, narrow_scores_, by_score_);
  std::vector<double> drawn = scores_;
  if (explore) {
    // Insurance against what a greedy list would never find out; it gets cheaper with the lists. A model to
    // start from stands for many, until users change.
    constexpr double kFullLists = 30.0;
    constexpr double kLeastScale = 0.1;
    constexpr double kStartScale = 0.03;
    const bool is_start = state.changed_at == 0 && state.beliefs.back().features().start() != nullptr;
    const double lists = static_cast<double>(state.learned - state.changed_at + 1);
    const double scale = is_start ? kStartScale : std::clamp(kFullLists / lists, kLeastScale, 1.0);
    std::vector<std::vector<double>> of_models;
    for (std::size_t model = 0; model < state.beliefs.size(); ++model) {
      of_models.push_back(views_[model].scores);
      state.beliefs[model].sample(views_[model], scale, draw_keys_[model], round, of_models.back());
    }
    average(state, of_models, drawn);
    constexpr double kTie = 1e-9;  // what is equal comes in any order
    for (std::size_t doc = 0; doc < drawn.size(); ++doc)
      drawn[doc] += kTie * RngStream(tie_key_, round, static_cast<std::uint32_t>(doc)).uniform();
  }
  const bool controlled = fair != nullptr && fair_.fair == Fairness::kFairCo;
  if (controlled) {
    for (std::size_t doc = 0; doc < drawn.size(); ++doc)
      drawn[doc] += fair_control(*fair, fair_.fair_gain, fair->groups[doc]);
  }
  drawn_ = by_score_;
  std::stable_sort(drawn_.begin(), drawn_.end(),
                   [&](std::int32_t a, std::int32_t b) { return drawn[a] > drawn[b]; });
  const bool needs_all = fair != nullptr && fair_.fair == Fairness::kFairExp;
  const auto decided = std::span<const std::int32_t>(drawn_).first(
      needs_all ? drawn_.size() : std::min(drawn_.size(), static_cast<std::size_t>(cutoff_)));
  find_orders(state, decided, std::min(drawn_.size(), static_cast<std::size_t>(cutoff_)));
  const std::vector<double> certain(explore || controlled ? 0 : drawn_.size(), 1.0);
  RankedList list = list_.make_of_list(by_score_, drawn_, certain, round, fair);
  if (!needs_all) list.stated_orders = stated_;  // else other documents may be shown
  return list;
}

void ClickRanking::order_probabilities(const ClickState& state, std::span<const std::int32_t> docs,
                                       std::vector<double>& probabilities) const {
  const std::size_t count = docs.size();
  probabilities.assign(count * count, 0.0);
  std::vector<double> variances(count * count);
  for (std::size_t model = 0; model < state.beliefs.size(); ++model) {
    const double weight = state.weights[model];
    constexpr double kLeastWeight = 1e-6;  // less changes no decision
    const bool informed = state.beliefs[model].has_factor();
    if (informed && weight >= kLeastWeight)
      state.beliefs[model].difference_variances(views_[model], docs, variances);
    const std::vector<double>& scores = views_[model].scores;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        double share = 0.5;
        const double variance = variances[i * count + j];
        if (i != j && informed && weight >= kLeastWeight && variance > 0.0)
          share = normal_share_below((scores[docs[i]] - scores[docs[j]]) / std::sqrt(variance));
        probabilities[i * count + j] += weight * share;
      }
    }
  }
}

void ClickRanking::find_orders(const ClickState& state, std::span<const std::int32_t> docs,
                               std::size_t first) {
  list_.orders().reset(std::ssize(scores_));
  std::vector<std::int32_t> place_of(scores_.size());
  for (std::size_t place = 0; place < by_score_.size(); ++place)
    place_of[by_score_[place]] = static_cast<std::int32_t>(place);
  order_probabilities(state, docs, probabilities_);
  stated_.clear();
  for (std::size_t i = 0; i < docs.size(); ++i) {
    for (std::size_t j = 0; j < docs.size(); ++j) {
      if (place_of[docs[i]] >= place_of[docs[j]]) continue;
      const double probability = probabilities_[i * docs.size() + j];
      if (probability >= level_) list_.orders().set(place_of[docs[i]], place_of[docs[j]]);
      if (i < first && j < first) {
        // Models may disagree with the order that their scores' average has.
        stated_.push_back(probability < 0.5 ? StatedOrder{docs[j], docs[i], 1.0 - probability}
                                            : StatedOrder{docs[i], docs[j], probability});
      }
    }
  }
}

}  // namespace olrank
