#include "models/skeleton/score_model_ranker.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/math/any_cpu.h"
#include "core/metrics/list_metrics.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// A score model with its parameters, and the ranker's way to make lists.
class FrozenScoreModel : public FrozenRanker {
 public:
  FrozenScoreModel(std::shared_ptr<const ScoreModel> model, std::span<const float> theta, ScoreLists lists)
      : model_(std::move(model)), theta_(theta.begin(), theta.end()), lists_(std::move(lists)) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    ranking.scores.resize(task.docs.docs);
    model_->score(context, theta_, task.docs, ranking.scores);
    order_by_score(context, ranking.scores, ranking.by_score);
    ranking.knows_orders = false;
    ranking.certainty.reset();
    if (!task.explore) {
      ranking.list = ranking.by_score;
      ranking.propensity.assign(ranking.list.size(), 1.0);
      return;
    }
    const Scratch::Frame frame(context.scratch());
    const auto scores = context.scratch().take<double>(ranking.scores.size());
    std::copy(ranking.scores.begin(), ranking.scores.end(), scores.begin());
    lists_(context, task, scores, ranking.list, ranking.propensity);
  }
  ModelTensors model() const override { return model_->tensors(theta_); }

 private:
  std::shared_ptr<const ScoreModel> model_;
  std::vector<float> theta_;
  ScoreLists lists_;
};

}  // namespace

ScoreModelRanker::ScoreModelRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                                   TrialKeys keys, std::vector<float> first_theta)
    : model_(std::move(model)),
      name_(settings.name),
      keys_(keys),
      learning_rate_(settings.trainer.learning_rate),
      learning_rate_decay_(settings.trainer.learning_rate_decay),
      theta_(std::move(first_theta)) {
  if (theta_.empty()) theta_.resize(model_->parameters());
  assert(std::ssize(theta_) == model_->parameters());
}

bool ScoreModelRanker::has_scores_of(const QueryDocs& query, std::uint32_t round) const {
  return scored_round_ != 0 && scored_round_ == round && scored_query_.query == query.query &&
         scored_query_.first_doc == query.first_doc &&
         scored_query_.features.values == query.features.values && scored_query_.docs() == query.docs();
}

void ScoreModelRanker::score_with(ExecutionContext& context, std::span<const float> tried,
                                  const QueryDocs& query, std::uint32_t round,
                                  std::span<double> scores) const {
  const Scratch::Frame frame(context.scratch());
  const auto narrow = context.scratch().take<float>(scores.size());
  model_->score(context, tried, query.features, narrow);
  double poison = 0.0;  // becomes NaN with the first score that is not finite
  for (std::size_t doc = 0; doc < scores.size(); ++doc) {
    scores[doc] = narrow[doc];
    poison += scores[doc] * 0.0;
  }
  if (poison == 0.0) return;
  throw_error<NumericError>(
      "A score of ranker '{}' for query {} was not finite in round {}: its parameters have grown too "
      "large. Use a lower learning_rate.",
      name_, query.query, round);
}

std::span<const double> ScoreModelRanker::scores_of(RoundContext& context, const QueryDocs& query,
                                                    std::uint32_t round) {
  if (has_scores_of(query, round)) return scores_;
  const auto measured = context.clock.measure("score");
  scored_round_ = 0;  // stays so if anything below throws
  scores_.resize(query.docs());
  score_with(context.execution, theta_, query, round, scores_);
  scored_query_ = query;
  scored_round_ = round;
  return scores_;
}

RankedList ScoreModelRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const auto scores = scores_of(context, query, round);
  const auto measured = context.clock.measure("rank");
  lists()(context.execution, {.docs = query.features, .round = round, .fair = query.fair}, scores, list_,
          propensity_);
  return shown_list();
}

std::shared_ptr<const FrozenRanker> ScoreModelRanker::freeze() const {
  ScoreLists lists = this->lists();
  return lists ? std::make_shared<FrozenScoreModel>(model_, theta_, std::move(lists)) : nullptr;
}

double ScoreModelRanker::step() const {
  return learning_rate_ * power_of(learning_rate_decay_, rounds_learned_);
}

void ScoreModelRanker::follow_gradient(ExecutionContext& context, const QueryDocs& query,
                                       std::span<const double> weights) {
  const Scratch::Frame frame(context.scratch());
  const auto gradient = context.scratch().take<double>(theta_.size());
  std::fill(gradient.begin(), gradient.end(), 0.0);
  model_->add_gradient(context, theta_, query.features, weights, gradient);
  move_along(gradient);
}

void ScoreModelRanker::move_along(std::span<const double> direction) {
  const double eta = step();
  const double limit = model_->largest_parameter();
  for (std::size_t i = 0; i < theta_.size(); ++i) {
    if (std::abs(theta_[i] + eta * direction[i]) <= limit) continue;
    throw_error<NumericError>(
        "The step of round {} of ranker '{}' leaves the range in which scores are finite: use a lower "
        "learning_rate or normalised features.",
        rounds_learned_ + 1, name_);
  }
  for (std::size_t i = 0; i < theta_.size(); ++i) {
    theta_[i] = static_cast<float>(theta_[i] + eta * direction[i]);
  }
  scored_round_ = 0;
}

void ScoreModelRanker::set_theta(std::span<const float> theta) {
  assert(theta.size() == theta_.size());
  std::copy(theta.begin(), theta.end(), theta_.begin());
  scored_round_ = 0;
}

void ScoreModelRanker::check(const Feedback& feedback, Scratch& scratch) {
  if (feedback.shown.size() != feedback.clicks.size()) {
    throw_error<InvalidArgument>(
        "Round {} shows {} documents but has clicks for {}: give 0 or 1 for each document shown.",
        feedback.round, feedback.shown.size(), feedback.clicks.size());
  }
  const std::int64_t docs = feedback.query.docs();
  const Scratch::Frame frame(scratch);
  const auto seen = scratch.take<bool>(docs);
  std::fill(seen.begin(), seen.end(), false);
  for (const std::int32_t doc : feedback.shown) {
    if (doc < 0 || doc >= docs) {
      throw_error<InvalidArgument>("Round {} shows document {} of query {}, but its documents are 0 to {}.",
                                   feedback.round, doc, feedback.query.query, docs - 1);
    }
    if (std::exchange(seen[doc], true)) {
      throw_error<InvalidArgument>("Round {} shows document {} of query {} twice.", feedback.round, doc,
                                   feedback.query.query);
    }
  }
}

void ScoreModelRanker::describe(const QueryDocs& query, bool full, RoundDetail& detail) {
  assert(has_scores_of(query, scored_round_));
  static_cast<void>(query);
  detail.scores = scores_;
  detail.theta.clear();
  if (full) detail.theta.push_back(theta_);
  detail.width_sq.clear();
  detail.certain.clear();
}

void ScoreModelRanker::score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const {
  model_->score(context, theta_, docs, scores);
}

void ScoreModelRanker::fields(StateFields& state) {
  state.sized("theta", theta_);
  state.numbers("rounds_learned", rounds_learned_);
  if (state.reads()) scored_round_ = 0;
}

}  // namespace olrank
