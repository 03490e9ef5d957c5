#include "models/neural/confident_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/math/certainty.h"
#include "models/frozen_list.h"
#include "models/neural/ranker_network.h"
#include "models/neural/width_comparison.h"
#include "models/score_order.h"

namespace olrank {
namespace {

PosteriorSpec posterior_spec(const RankerSettings& settings, const NetworkShape& shape,
                             std::int64_t memory) {
  PosteriorSpec spec;
  spec.shape = shape;
  spec.covariance = settings.posterior.covariance;
  spec.form = settings.posterior.form;
  spec.lambda = settings.posterior.lambda;
  spec.scale = covariance_scale(settings.network);
  spec.memory = memory > 0 ? memory : available_memory();
  // Beside a shadow, an inverse of its own gets half.
  if (settings.posterior.has_shadow() && settings.posterior.covariance == Covariance::kDiagonalOfInverse)
    spec.memory /= 2;
  return spec;
}

std::unique_ptr<Posterior> make_shadow(const RankerSettings& settings, const NetworkShape& shape,
                                       std::int64_t memory) {
  if (!settings.posterior.has_shadow()) return nullptr;
  PosteriorSpec spec = posterior_spec(settings, shape, memory);
  spec.covariance = Covariance::kFull;
  return make_posterior(spec);
}

/// Differences of scores within their rounding are no order.
CertaintyRule certainty_rule(const RankerSettings& settings, const Posterior& posterior,
                             std::span<const float> magnitudes) {
  float largest = 0.0F;
  for (const float magnitude : magnitudes) largest = std::max(largest, magnitude);
  return certainty_policy(settings).rule(posterior.log_det(), rounding_of_scores(largest));
}

class FrozenNetwork : public FrozenRanker {
 public:
  FrozenNetwork(const RankerSettings& settings, const NetworkShape& shape, PhiloxKey list_key,
                std::vector<float> theta, std::shared_ptr<const Posterior> posterior)
      : settings_(settings),
        shape_(shape),
        list_key_(list_key),
        theta_(std::move(theta)),
        posterior_(std::move(posterior)) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    const auto docs = static_cast<std::size_t>(task.docs.docs);
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto factors = scratch.take<float>(docs * static_cast<std::size_t>(shape_.factors()));
    const auto magnitudes = scratch.take<float>(docs);
    const auto width_sq = scratch.take<double>(docs * docs);
    ranking.scores.resize(docs);
    tangent_factors(context, shape_, theta_, task.docs, factors, ranking.scores, magnitudes);
    order_by_score(context, ranking.scores, ranking.by_score);
    const WidthHealth health = posterior_->widths(context, {factors.data(), task.docs.docs}, width_sq);
    if (health.lost > 0) {
      throw NumericError(
          fmt::format("{} squared widths of {} documents have lost their digits: choose a larger lambda.",
                      health.lost, docs));
    }
    certain_by_width(certainty_rule(settings_, *posterior_, magnitudes), ranking.scores, ranking.by_score,
                     width_sq, ranking.orders);
    make_frozen_list(settings_.explore, list_key_, task, ranking);
  }
  ModelTensors model() const override { return network_tensors(settings_.network, shape_, theta_); }

 private:
  RankerSettings settings_;
  NetworkShape shape_;
  PhiloxKey list_key_;
  std::vector<float> theta_;
  std::shared_ptr<const Posterior> posterior_;
};

}  // namespace

ConfidentNetwork::ConfidentNetwork(std::int64_t features, const RankerSettings& settings,
                                   const TrialKeys& keys, std::int64_t cutoff, std::int64_t memory,
                                   std::vector<float> first_theta)
    : settings_(settings),
      cutoff_(cutoff),
      batch_key_(keys.key(Purpose::kBatch)),
      list_key_(keys.key(Purpose::kList)),
      shape_(network_shape(settings.network, features)),
      first_theta_(first_theta.empty()
                       ? first_parameters(settings.network, shape_, keys.key(Purpose::kInitialisation))
                       : std::move(first_theta)),
      theta_(first_theta_),
      history_(features, settings.kind == RankerKind::kOlLambdaRank),
      trainer_(make_network_trainer({shape_, settings.trainer, settings.posterior.lambda,
                                     prior_scale(settings.network), first_theta_, batch_key_})),
      posterior_(make_posterior(posterior_spec(settings, shape_, memory))),
      shadow_(make_shadow(settings, shape_, memory)),
      list_(settings.explore.list, settings.explore.refine, list_key_) {}

void ConfidentNetwork::look_at(ExecutionContext& context, const QueryDocs& query) {
  const auto docs = static_cast<std::size_t>(query.docs());
  factors_.resize(docs * static_cast<std::size_t>(shape_.factors()));
  scores_.resize(docs);
  magnitudes_.resize(docs);
  tangent_factors(context, shape_, theta_, query.features, factors_, scores_, magnitudes_);
  seen_query_ = query.query;
}

RankedList ConfidentNetwork::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  {
    const auto measured = context.clock.measure("score");
    look_at(context.execution, query);
    order_by_score(context.execution, scores_, by_score_);
  }
  {
    const auto measured = context.clock.measure("width");
    width_sq_.resize(static_cast<std::size_t>(query.docs() * query.docs()));
    posterior_->width_sq(context.execution, {factors_.data(), query.docs()}, width_sq_);
  }
  RankedList list;
  {
    const auto measured = context.clock.measure("rank");
    list_rule_ = certainty_rule(settings_, *posterior_, magnitudes_);
    certain_by_width(list_rule_, scores_, by_score_, width_sq_, orders_);
    list = list_.make(by_score_, orders_, round, cutoff_);
  }
  if (shadow_) {
    const auto measured = context.clock.measure("shadow");
    const auto shown = static_cast<std::size_t>(std::min(cutoff_, query.docs()));
    list.turned_decisions = compare_widths(context.execution, list.docs.first(shown));
    list.width_ratios = width_ratios_;
  }
  return list;
}

TangentFactors ConfidentNetwork::factors_of(std::span<const std::int32_t> shown) {
  const auto factors = static_cast<std::size_t>(shape_.factors());
  shown_factors_.resize(shown.size() * factors);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const auto row = std::span(factors_).subspan(static_cast<std::size_t>(shown[rank]) * factors, factors);
    std::copy(row.begin(), row.end(), shown_factors_.begin() + static_cast<std::ptrdiff_t>(rank * factors));
  }
  return {shown_factors_.data(), static_cast<std::int64_t>(shown.size())};
}

void ConfidentNetwork::teach_shadow(ExecutionContext& context, std::span<const std::int32_t> shown) {
  const auto rank_of = [&](std::int32_t doc) {
    return static_cast<std::int32_t>(std::find(shown.begin(), shown.end(), doc) - shown.begin());
  };
  shown_pairs_.clear();
  for (const PreferencePair& pair : pairs_)
    shown_pairs_.push_back({rank_of(pair.winner), rank_of(pair.loser)});
  shadow_->observe(context, factors_of(shown), shown_pairs_);
}

Tally ConfidentNetwork::compare_widths(ExecutionContext& context, std::span<const std::int32_t> shown) {
  exact_sq_.resize(shown.size() * shown.size());
  shadow_->width_sq(context, factors_of(shown), exact_sq_);
  shown_scores_.clear();
  own_sq_.clear();
  for (const std::int32_t i : shown) {
    shown_scores_.push_back(double{scores_[static_cast<std::size_t>(i)]});
    for (const std::int32_t j : shown)
      own_sq_.push_back(
          width_sq_[static_cast<std::size_t>(i) * scores_.size() + static_cast<std::size_t>(j)]);
  }
  return olrank::compare_widths({list_rule_, shown_scores_, own_sq_, exact_sq_}, width_ratios_);
}

LearnReport ConfidentNetwork::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  steps_.clear();
  if (pairs_.empty()) return {};
  {
    const auto measured = context.clock.measure("observe");
    if (seen_query_ != feedback.query.query) look_at(context.execution, feedback.query);
    posterior_->observe(context.execution, {factors_.data(), feedback.query.docs()}, pairs_);
    loss_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks, pairs_, loss_pairs_);
    history_.add(feedback, loss_pairs_.pairs, loss_pairs_.weight);
  }
  if (shadow_) {
    const auto measured = context.clock.measure("shadow");
    teach_shadow(context.execution, feedback.shown);
  }
  const auto measured = context.clock.measure("train");
  const bool weigh = settings_.kind == RankerKind::kOlLambdaRank;
  const auto step =
      trainer_->train(context.execution, {history_, history_.terms(), weigh, feedback.round}, theta_);
  if (step) steps_.push_back(*step);
  seen_query_ = -1;
  return {pairs_, steps_};
}

void ConfidentNetwork::describe(const QueryDocs& query, bool full, RoundDetail& detail) {
  detail.scores.assign(scores_.begin(), scores_.end());
  if (!full) return;
  detail.theta = {theta_};
  detail.width_sq = width_sq_;
  write_certain_matrix(orders_, by_score_, query.docs(), detail.certain);
}

void ConfidentNetwork::score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const {
  score_docs(context, shape_, theta_, docs, scores);
}

ModelTensors ConfidentNetwork::model() const {
  return network_tensors(settings_.network, shape_, theta_);
}

std::shared_ptr<const FrozenRanker> ConfidentNetwork::freeze() const {
  return std::make_shared<FrozenNetwork>(settings_, shape_, list_key_, theta_, posterior_->freeze());
}

std::vector<RankerFigure> ConfidentNetwork::figures(ExecutionContext& context) const {
  return {{"drift", posterior_->drift(context)},
          {"negative_widths", static_cast<double>(posterior_->negative_widths())},
          {"posterior_bytes", static_cast<double>(posterior_->bytes())}};
}

void ConfidentNetwork::save(StateWriter& state) const {
  state.put("theta", theta_);
  history_.save(state);
  trainer_->save(state);
  posterior_->save(state);
  if (shadow_) shadow_->save(state);
}

void ConfidentNetwork::load(StateReader& state) {
  state.get_into("theta", std::span(theta_));
  history_.load(state);
  trainer_->load(state);
  posterior_->load(state);
  if (shadow_) shadow_->load(state);
  seen_query_ = -1;
}

}  // namespace olrank
