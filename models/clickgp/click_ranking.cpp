#include "models/clickgp/click_ranking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "core/fair/exposure.h"
#include "models/baselines/baselines.h"
#include "models/skeleton/belief.h"

namespace olrank {
namespace {

constexpr std::uint64_t kMostModels = 3;

double normal_share_below(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

constexpr double kLowest = -std::numeric_limits<double>::infinity();
constexpr std::size_t kNoiseLanes = 8;

/// Keys by place: from + sign · turned.
struct TurnedKeys {
  std::span<const double> from;
  std::span<const double> turned;
  double sign = 1.0;

  double operator[](std::size_t place) const { return from[place] + sign * turned[place]; }
};

/// Adds to each rank the probability of its prefix if the order is that of the keys: those of the ranks,
/// and from `rest` on those of documents that were not shown. `greedy` is scratch memory.
void add_chances(const TurnedKeys& keys, std::size_t rest, std::size_t docs, double floor,
                 std::span<double> greedy, std::span<double> propensity) {
  std::array<double, kNoiseLanes> highest;
  highest.fill(kLowest);
  const std::size_t places = keys.from.size();
  for (std::size_t place = rest; place < places; place += kNoiseLanes) {
    for (std::size_t lane = 0; lane < kNoiseLanes; ++lane) {
      const double key = keys[place + lane];
      highest[lane] = highest[lane] < key ? key : highest[lane];
    }
  }
  double best = *std::max_element(highest.begin(), highest.end());
  const std::size_t ranks = propensity.size();
  for (std::size_t rank = ranks; rank-- > 0;) {
    const double key = keys[rank];
    greedy[rank] = key < best ? 0.0 : 1.0;
    // One of those with this key, if there are several.
    for (std::size_t place = rank + 1; key == best && place < places; ++place)
      greedy[rank] += keys[place] == best ? 1.0 : 0.0;
    if (key == best) greedy[rank] = 1.0 / greedy[rank];
    best = std::max(best, key);
  }
  double of_prefix = 1.0;
  for (std::size_t rank = 0; rank < ranks && of_prefix > 0.0; ++rank) {
    of_prefix *= (1.0 - floor) * greedy[rank] + floor / static_cast<double>(docs - rank);
    propensity[rank] += of_prefix;
  }
}

}  // namespace

void find_propensity(std::span<const double> centre, const ScoreDraw& draw, double floor,
                     std::span<const std::int32_t> list, std::span<double> propensity) {
  constexpr int kHalfCircle = 16;  // angles
  const std::size_t docs = list.size();
  const std::size_t ranks = propensity.size();
  // By place in the list, in whole lanes: first what was shown, then the rest.
  const std::size_t rest = (ranks + kNoiseLanes - 1) / kNoiseLanes * kNoiseLanes;
  const std::size_t places = rest + (docs - ranks + kNoiseLanes - 1) / kNoiseLanes * kNoiseLanes;
  std::vector<double> work(5 * places + ranks);
  const auto part = [&](std::size_t index) { return std::span(work).subspan(index * places, places); };
  const std::array<std::span<double>, 2> towards = {part(0), part(1)};  // centre ± common
  for (const auto keys : towards) std::fill(keys.begin(), keys.end(), kLowest);
  const std::span<double> own = part(2);
  const std::span<double> other = part(3);
  const std::span<double> turned = part(4);
  const std::span<double> greedy = std::span(work).last(ranks);
  bool by_chance = false;
  for (std::size_t rank = 0; rank < docs; ++rank) {
    const std::size_t place = rank < ranks ? rank : rest + rank - ranks;
    const std::int32_t doc = list[rank];
    towards[0][place] = centre[doc] + draw.common[doc];
    towards[1][place] = centre[doc] - draw.common[doc];
    own[place] = draw.own[doc];
    other[place] = draw.other[doc];
    by_chance = by_chance || draw.common[doc] != 0.0 || draw.own[doc] != 0.0 || draw.other[doc] != 0.0;
  }
  std::fill(propensity.begin(), propensity.end(), 0.0);
  for (int angle = 0; angle < (by_chance ? kHalfCircle : 1); ++angle) {
    const double turn = std::numbers::pi * angle / kHalfCircle;
    const double along = std::cos(turn);
    const double across = std::sin(turn);
    for (std::size_t place = 0; place < places; place += kNoiseLanes) {
      for (std::size_t lane = place; lane < place + kNoiseLanes; ++lane)
        turned[lane] = along * own[lane] + across * other[lane];
    }
    for (const double sign : {1.0, -1.0}) {
      for (const std::span<double> from : towards)
        add_chances({from, turned, sign}, rest, docs, floor, greedy, propensity);
    }
  }
  double above = 4.0 * (by_chance ? kHalfCircle : 1);
  for (double& probability : propensity) {
    const double of_prefix = probability;
    probability = std::min(of_prefix / above, 1.0);
    above = of_prefix;
  }
}

ClickRanking::ClickRanking(const RankerSettings& settings, const TrialKeys& keys, std::int64_t cutoff)
    : fair_(settings.fair),
      level_(1.0 - settings.explore.delta),
      explore_floor_(settings.click.explore_floor),
      tie_key_(keys.key(Purpose::kList)),
      floor_key_(keys.key(Purpose::kList, 1)),
      cutoff_(cutoff),
      list_(settings.explore, settings.fair, keys, cutoff) {
  for (std::uint64_t model = 0; model < kMostModels; ++model)
    draw_keys_.push_back(keys.key(Purpose::kScores, model));
}

void ClickRanking::look(const ClickState& state, FeatureMatrix docs, const QueryIdentity& identity) {
  state.beliefs.back().features().see(docs, now_scaled_);
  // A list is made and then learned from, mostly with nothing new between.
  LookedAt now(state.learned, identity.query, {identity.docs.begin(), identity.docs.end()});
  if (now == looked_at_ && now_scaled_ == scaled_) return;
  looked_at_ = std::move(now);
  std::swap(scaled_, now_scaled_);
  views_.resize(state.beliefs.size());
  find_rows(state);
  const KnownQuery* known = identity.is_known() ? state.memory.find(identity.query) : nullptr;
  places_.assign(docs.docs, -1);
  if (known != nullptr) {
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) places_[doc] = known->place_of(identity.docs[doc]);
    find_known_rows(state, *known);
  } else {
    known_rows_.clear();
  }
  const double faded = known == nullptr ? 1.0 : known->faded(state.learned, state.half_life);
  std::array<std::span<const double>, kMostModels> of_models;
  for (std::size_t model = 0; model < state.beliefs.size(); ++model) {
    state.beliefs[model].look(known, model, places_, known_rows_, faded, views_[model]);
    of_models[model] = views_[model].scores;
  }
  average(state, std::span(of_models).first(state.beliefs.size()), scores_);
}

void ClickRanking::find_rows(const ClickState& state) {
  const ClickFeatures& widest = state.beliefs.back().features();
  const std::int64_t width = widest.columns();
  const std::int64_t docs = std::ssize(scaled_) / widest.seen();
  AlignedVector<double>& rows = views_.back().rows;
  rows.resize(docs * width);
  means_.resize(widest.centred());
  widest.expand_centred(scaled_, means_, rows);
  share_rows(state, 0);
}

void ClickRanking::find_known_rows(const ClickState& state, const KnownQuery& known) {
  const std::int64_t seen = state.beliefs.back().features().seen();
  const bool has_means = std::equal(means_.begin(), means_.end(), known.means.begin(), known.means.end());
  known_rows_.assign(known.docs.size(), -1);
  for (std::size_t doc = 0; doc < places_.size() && has_means; ++doc) {
    if (places_[doc] < 0) continue;
    const float* now = scaled_.data() + static_cast<std::int64_t>(doc) * seen;
    if (std::equal(now, now + seen, known.scaled.data() + places_[doc] * seen))
      known_rows_[places_[doc]] = static_cast<std::int32_t>(doc);
  }
  std::vector<float> others;
  for (std::size_t place = 0; place < known_rows_.size(); ++place) {
    if (known_rows_[place] >= 0) continue;
    const auto scaled = known.scaled.begin() + static_cast<std::int64_t>(place) * seen;
    others.insert(others.end(), scaled, scaled + seen);
  }
  std::int32_t next = add_rows(state, others, known.means);
  for (std::int32_t& row : known_rows_) {
    if (row < 0) row = next++;
  }
}

std::int32_t ClickRanking::add_rows(const ClickState& state, std::span<const float> scaled,
                                    std::span<const float> means) {
  const ClickFeatures& widest = state.beliefs.back().features();
  const auto first = std::ssize(views_.back().model);
  const std::int64_t docs = std::ssize(scaled) / widest.seen();
  AlignedVector<double>& rows = views_.back().rows;
  rows.resize((first + docs) * widest.columns());
  widest.expand(scaled, means, std::span(rows).subspan(first * widest.columns()));
  share_rows(state, first);
  return static_cast<std::int32_t>(first);
}

void ClickRanking::share_rows(const ClickState& state, std::int64_t first) {
  const ClickFeatures& widest = state.beliefs.back().features();
  const std::int64_t width = widest.columns();
  const AlignedVector<double>& rows = views_.back().rows;
  const std::int64_t docs = std::ssize(rows) / width;
  for (std::size_t model = 0; model < views_.size(); ++model) {
    ClickView& view = views_[model];
    const std::int64_t columns = state.beliefs[model].columns();
    view.rows.resize(docs * columns);
    for (std::int64_t doc = first; doc < docs && model + 1 < views_.size(); ++doc) {
      const auto row = view.rows.begin() + doc * columns;
      std::copy_n(rows.begin() + doc * width, columns, row);
      if (widest.start() != nullptr) row[columns - 1] = rows[doc * width + widest.centred()];
    }
    view.model.resize(docs);
    state.beliefs[model].score_rows(std::span(view.rows).subspan(first * columns),
                                    std::span(view.model).subspan(first));
  }
}

void ClickRanking::average(const ClickState& state, std::span<const std::span<const double>> of_models,
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

void ClickRanking::draw_order(ExecutionContext& context, const ClickState& state, std::uint32_t round,
                              std::span<const double> centre) {
  // Insurance against what a greedy list would never find out; it gets cheaper with the lists. A model to
  // start from stands for many, until users change.
  constexpr double kFullLists = 30.0;
  constexpr double kLeastScale = 0.1;
  constexpr double kStartScale = 0.03;
  const bool is_start = state.changed_at == 0 && state.beliefs.back().features().start() != nullptr;
  const double lists = static_cast<double>(state.learned - state.changed_at + 1);
  const double scale = is_start ? kStartScale : std::clamp(kFullLists / lists, kLeastScale, 1.0);
  const std::size_t docs = centre.size();
  draws_.resize(state.beliefs.size());
  for (std::size_t model = 0; model < draws_.size(); ++model)
    state.beliefs[model].sample(views_[model], scale, draw_keys_[model], round, draws_[model]);
  ScoreDraw& draw = draw_;
  for (const auto part : {&ScoreDraw::common, &ScoreDraw::own, &ScoreDraw::other}) {
    std::array<std::span<const double>, kMostModels> of_models;
    for (std::size_t model = 0; model < draws_.size(); ++model) of_models[model] = draws_[model].*part;
    average(state, std::span(of_models).first(draws_.size()), draw.*part);
  }
  std::vector<double> keys(docs);
  for (std::size_t doc = 0; doc < docs; ++doc) keys[doc] = (centre[doc] + draw.common[doc]) + draw.own[doc];
  // Documents with equal keys come in any order.
  const auto coin = [&](std::int32_t doc) {
    return RngStream(tie_key_, round, static_cast<std::uint32_t>(doc)).uniform();
  };
  std::stable_sort(drawn_.begin(), drawn_.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : coin(a) > coin(b);
  });
  if (explore_floor_ > 0.0) {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto best_first = scratch.take<std::int32_t>(docs);
    std::copy(drawn_.begin(), drawn_.end(), best_first.begin());
    epsilon_greedy_list(best_first, explore_floor_, floor_key_, round, scratch, drawn_,
                        scratch.take<double>(docs));
  }
  propensity_.resize(std::min(docs, static_cast<std::size_t>(cutoff_)));
  find_propensity(centre, draw, explore_floor_, drawn_, propensity_);
}

RankedList ClickRanking::make(ExecutionContext& context, const ClickState& state, std::uint32_t round,
                              const FairRound* fair, bool explore) {
  narrow_scores_.assign(scores_.begin(), scores_.end());
  order_by_score(context, narrow_scores_, by_score_);
  std::vector<double> centre = scores_;
  const bool controlled = fair != nullptr && fair_.fair == Fairness::kFairCo;
  if (controlled) {
    for (std::size_t doc = 0; doc < centre.size(); ++doc)
      centre[doc] += fair_control(*fair, fair_.fair_gain, fair->groups[doc]);
  }
  drawn_ = by_score_;
  const std::size_t first = std::min(drawn_.size(), static_cast<std::size_t>(cutoff_));
  if (explore) {
    draw_order(context, state, round, centre);
  } else {
    std::stable_sort(drawn_.begin(), drawn_.end(),
                     [&](std::int32_t a, std::int32_t b) { return centre[a] > centre[b]; });
    propensity_.assign(first, 1.0);
  }
  const bool needs_all = fair != nullptr && fair_.fair == Fairness::kFairExp;
  const auto decided = std::span<const std::int32_t>(drawn_).first(needs_all ? drawn_.size() : first);
  find_orders(state, decided, first);
  if (controlled) propensity_.clear();  // the control depends on what was shown before
  RankedList list = list_.make_of_list(by_score_, drawn_, propensity_, round, fair);
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
