#include "models/baselines/lambdarank_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/metrics/list_metrics.h"
#include "core/ops/list_loss.h"
#include "core/ops/optimizer_step.h"
#include "models/baselines/first_model.h"

namespace olrank {

QueryGrades grades_of(const LabelledQueries& labels, const QueryDocs& query, const std::string& ranker) {
  if (query.query >= 0 && query.query < labels.queries()) {
    const QueryGrades grades = labels.grades_of(query.query);
    if (std::ssize(grades.of_doc) == query.docs()) return grades;
  }
  throw InvalidArgument(
      fmt::format("Ranker '{}' learns from true grades but has none for query {} with {} documents: train "
                  "it on the training part that it was made for.",
                  ranker, query.query, query.docs()));
}

LambdaRankLabels::LambdaRankLabels(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                                   TrialKeys keys, std::vector<float> first_theta,
                                   const LabelledQueries& labels)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
      labels_(labels),
      objective_(score_model(), labels, {.loss = ListLoss::kLambdaRank}, 1),
      steps_a_round_(settings.trainer.steps),
      batch_(settings.trainer.batch),
      position_(theta().begin(), theta().end()),
      first_(position_.size()),
      second_(position_.size()),
      gradient_(position_.size()) {
  if (settings.trainer.restart == Restart::kFirst) first_theta_.assign(theta().begin(), theta().end());
}

RankedList LambdaRankLabels::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const auto scores = scores_of(context, query, round);
  const auto measured = context.clock.measure("rank");
  return greedy_list(context.execution, scores);
}

LearnReport LambdaRankLabels::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  grades_of(labels_, feedback.query, name());
  const auto measured = context.clock.measure("train");
  asked_.push_back(feedback.query.query);
  std::vector<float> theta(this->theta().begin(), this->theta().end());
  if (!first_theta_.empty()) {
    theta = first_theta_;
    position_.assign(theta.begin(), theta.end());
    std::fill(first_.begin(), first_.end(), 0.0);
    std::fill(second_.begin(), second_.end(), 0.0);
    steps_ = 0;
  }
  // Without the user, whose clicks change nothing.
  const PhiloxKey key = make_key({.seed = keys().seed, .purpose = Purpose::kBatch, .fold = keys().fold});
  for (std::int64_t step = 0; step < steps_a_round_; ++step) {
    RngStream draws(key, feedback.round, static_cast<std::uint32_t>(step));
    drawn_.clear();
    for (std::int64_t number = 0; number < std::min(batch_, std::ssize(asked_)); ++number)
      drawn_.push_back(asked_[draws.index_of(std::ssize(asked_))]);
    objective_.mean(theta, drawn_, gradient_);
    adam_step(++steps_, this->step(), 0.0, gradient_, {first_, second_}, position_, theta);
  }
  set_theta(theta);
  end_round();
  return {};
}

void LambdaRankLabels::fields(StateFields& state) {
  ScoreModelRanker::fields(state);
  state.any("asked", asked_);
  state.numbers("steps", steps_);
  state.sized("position", position_);
  state.sized("first", first_);
  state.sized("second", second_);
}

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request) {
  return make_on_first_model<LambdaRankLabels>(request, *request.dependencies.labels);
}

void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext&) {
  settings.trainer.learning_rate = 0.01;
  settings.trainer.steps = 2;
  settings.trainer.batch = 16;
}

LambdaRankStep::LambdaRankStep(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                               TrialKeys keys, std::vector<float> first_theta,
                               const LabelledQueries& labels)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)), labels_(labels) {}

RankedList LambdaRankStep::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const auto scores = scores_of(context, query, round);
  const auto measured = context.clock.measure("rank");
  return greedy_list(context.execution, scores);
}

LearnReport LambdaRankStep::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  const QueryGrades grades = grades_of(labels_, feedback.query, name());
  const auto scores = scores_of(context, feedback.query, feedback.round);
  const auto measured = context.clock.measure("train");
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto weights = scratch.take<double>(scores.size());
  list_loss({.loss = ListLoss::kLambdaRank}, scores, grades.of_doc, scratch, weights);
  for (double& weight : weights) weight = 0.0 - weight;  // the way up
  step_ = {step()};
  const bool moves = std::any_of(weights.begin(), weights.end(), [](double w) { return w != 0.0; });
  if (moves) follow_gradient(context.execution, feedback.query, weights);
  end_round();
  if (!moves) return {};
  return {{}, step_};
}

std::unique_ptr<OnlineRanker> make_lambdarank_step(const RankerRequest& request) {
  return make_on_first_model<LambdaRankStep>(request, *request.dependencies.labels);
}

void set_lambdarank_step_defaults(RankerSettings& settings, const DefaultsContext&) {
  // For a network of the default width, after 1,000 rounds of synth:mslr-like: 0.01 is too far.
  settings.trainer.learning_rate = 0.003;
}

}  // namespace olrank
