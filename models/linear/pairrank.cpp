#include "models/linear/pairrank.h"

#include <utility>

#include "core/feedback/preference_pairs.h"
#include "models/frozen_list.h"
#include "models/linear/linear_ranking.h"
#include "models/score_order.h"

namespace olrank {
namespace {

/// Squared widths [V × V] of documents whose gradients are their features.
void linear_width_sq(ExecutionContext& context, const RowCovariance& covariance, FeatureMatrix docs,
                     std::span<double> width_sq) {
  const Scratch::Frame frame(context.scratch());
  const auto rows = context.scratch().take<double>(static_cast<std::size_t>(docs.docs * docs.features));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = docs.values[i];
  covariance.width_sq(context, rows, docs.docs, width_sq);
}

class FrozenPairRank : public FrozenRanker {
 public:
  FrozenPairRank(const RankerSettings& settings, PhiloxKey list_key, std::vector<float> theta,
                 const RowCovariance& covariance)
      : settings_(settings),
        list_key_(list_key),
        model_(static_cast<std::int64_t>(theta.size())),
        theta_(std::move(theta)),
        covariance_(covariance) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    score_and_order(context, model_, theta_, task.docs, ranking.scores, ranking.by_score);
    const Scratch::Frame frame(context.scratch());
    const auto width_sq =
        context.scratch().take<double>(static_cast<std::size_t>(task.docs.docs * task.docs.docs));
    linear_width_sq(context, covariance_, task.docs, width_sq);
    certain_by_width(certainty_policy(settings_).rule(covariance_.log_det(), 0.0), ranking.scores,
                     ranking.by_score, width_sq, ranking.orders);
    make_frozen_list(settings_.explore, list_key_, task, ranking);
  }
  ModelTensors model() const override { return model_.tensors(theta_); }

 private:
  RankerSettings settings_;
  PhiloxKey list_key_;
  LinearModel model_;
  std::vector<float> theta_;
  RowCovariance covariance_;
};

}  // namespace

PairRank::PairRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                   std::int64_t cutoff)
    : settings_(settings),
      cutoff_(cutoff),
      batch_key_(keys.key(Purpose::kBatch)),
      list_key_(keys.key(Purpose::kList)),
      model_(features),
      theta_(static_cast<std::size_t>(features)),
      trainer_(padded_features(features), newton_options(settings.trainer)),
      history_(features, FoldedPairs::kPadding),
      covariance_(settings.posterior.covariance, features, settings.posterior.lambda),
      list_(settings.explore.list, settings.explore.refine, list_key_) {}

RankedList PairRank::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  {
    const auto measured = context.clock.measure("score");
    score_and_order(context.execution, model_, theta_, query.features, scores_, by_score_);
  }
  {
    const auto measured = context.clock.measure("width");
    width_sq_.resize(static_cast<std::size_t>(query.docs() * query.docs()));
    linear_width_sq(context.execution, covariance_, query.features, width_sq_);
  }
  const auto measured = context.clock.measure("rank");
  certain_by_width(certainty_policy(settings_).rule(covariance_.log_det(), 0.0), scores_, by_score_,
                   width_sq_, orders_);
  return list_.make(by_score_, orders_, round, cutoff_);
}

LearnReport PairRank::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  if (pairs_.empty()) return {};
  {
    const auto measured = context.clock.measure("observe");
    Scratch& scratch = context.execution.scratch();
    const Scratch::Frame frame(scratch);
    const auto rows = scratch.take<double>(pairs_.size() * static_cast<std::size_t>(model_.features()));
    write_difference_rows(feedback.query.features, pairs_, rows);
    covariance_.observe(context.execution, rows, static_cast<std::int64_t>(pairs_.size()));
    history_.add(feedback.query, pairs_);
  }
  const auto measured = context.clock.measure("train");
  train(context.execution);
  return {pairs_, {}};
}

void PairRank::train(ExecutionContext& context) {
  const FoldedPairs pairs{history_.rows().data(), history_.distinct(), history_.stride(),
                          history_.first_wins().data(), history_.count().data()};
  const double ridge =
      ridge_weight(settings_.trainer.loss, settings_.posterior.lambda, history_.observed());
  latest_training_ = trainer_.train(context, pairs, history_.observed(), ridge);
  for (std::size_t k = 0; k < theta_.size(); ++k) theta_[k] = static_cast<float>(trainer_.theta()[k]);
}

void PairRank::describe(const QueryDocs& query, bool full, RoundDetail& detail) {
  detail.scores.assign(scores_.begin(), scores_.end());
  if (!full) return;
  detail.theta = {theta_};
  detail.width_sq = width_sq_;
  write_certain_matrix(orders_, by_score_, query.docs(), detail.certain);
}

void PairRank::score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const {
  model_.score(context, theta_, docs, scores);
}

std::shared_ptr<const FrozenRanker> PairRank::freeze() const {
  return std::make_shared<FrozenPairRank>(settings_, list_key_, theta_, covariance_);
}

std::vector<RankerFigure> PairRank::figures(ExecutionContext&) const {
  return {{"drift", covariance_.drift()},
          {"optimality_gap", latest_training_.optimality_gap},
          {"gradient_norm", latest_training_.gradient_norm}};
}

void PairRank::save(StateWriter& state) const {
  trainer_.save(state);
  history_.save(state);
  covariance_.save(state);
  state.put("training.gradient_norm", latest_training_.gradient_norm);
  state.put("training.optimality_gap", latest_training_.optimality_gap);
}

void PairRank::load(StateReader& state) {
  trainer_.load(state);
  history_.load(state);
  covariance_.load(state);
  latest_training_.gradient_norm = state.get_one<double>("training.gradient_norm");
  latest_training_.optimality_gap = state.get_one<double>("training.optimality_gap");
  for (std::size_t k = 0; k < theta_.size(); ++k) theta_[k] = static_cast<float>(trainer_.theta()[k]);
}

}  // namespace olrank
