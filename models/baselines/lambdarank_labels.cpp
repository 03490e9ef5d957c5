#include "models/baselines/lambdarank_labels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/metrics/list_metrics.h"
#include "core/ops/list_loss.h"
#include "core/ops/optimizer_step.h"
#include "core/throw_error.h"
#include "models/baselines/first_model.h"
#include "models/labels/label_objective.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

QueryGrades grades_of(const LabelledQueries& labels, const QueryDocs& query, const std::string& ranker) {
  if (query.query >= 0 && query.query < labels.queries()) {
    const QueryGrades grades = labels.grades_of(query.query);
    if (std::ssize(grades.of_doc) == query.docs()) return grades;
  }
  throw_error<InvalidArgument>(
      "Ranker '{}' learns from true grades but has none for query {} with {} documents: train it on the "
      "training part that it was made for.",
      ranker, query.query, query.docs());
}

namespace {

/// LambdaRank fitted to the true grades of all queries asked so far: the skyline of rankers that learn from
/// clicks. After each round it takes `steps` steps of Adam, each on the mean loss of `batch` rounds drawn
/// from those so far, regardless of the clicks, and shows lists by score. There is no regulariser. With
/// restart = "first" each round trains a new model: the skyline of Jia and Wang (WWW 2022, section 5.1).
class LambdaRankLabels : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankLabels(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                   std::vector<float> first_theta, const LabelledQueries& labels)
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

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto scores = scores_of(context, query, round);
    const auto measured = context.clock.measure("rank");
    return greedy_list(context.execution, scores);
  }
  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
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
  void fields(StateFields& state) override {
    ScoreModelRanker::fields(state);
    state.any("asked", asked_);
    state.numbers("steps", steps_);
    state.sized("position", position_);
    state.sized("first", first_);
    state.sized("second", second_);
  }

 private:
  const LabelledQueries& labels_;
  LabelObjective objective_;
  std::int64_t steps_a_round_;
  std::int64_t batch_;
  std::vector<float> first_theta_;  // where each round starts; empty: at the model of the round before

  std::vector<std::int64_t> asked_;  // the query of each round
  std::int64_t steps_ = 0;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;

  std::vector<std::int64_t> drawn_;
  std::vector<double> gradient_;
};

}  // namespace

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request) {
  return make_on_first_model<LambdaRankLabels>(request, *request.dependencies.labels);
}

void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext&) {
  settings.trainer.learning_rate = 0.01;
  settings.trainer.steps = 2;
  settings.trainer.batch = 16;
}

namespace {

/// LambdaRank on true grades, one gradient step per round on those of the asked query:
/// θ ← θ − η_t Σ_i slopes[i] ∇f(x_i), slopes of ListLoss::kLambdaRank, regardless of the clicks. It shows
/// lists by score; there is no regulariser. What a learner from clicks could do at best with as little
/// computation; LambdaRankLabels is what the labels allow.
class LambdaRankStep : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankStep(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                 std::vector<float> first_theta, const LabelledQueries& labels)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)), labels_(labels) {}

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto scores = scores_of(context, query, round);
    const auto measured = context.clock.measure("rank");
    return greedy_list(context.execution, scores);
  }
  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
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

 private:
  const LabelledQueries& labels_;
  std::array<double, 1> step_{};
};

}  // namespace

std::unique_ptr<OnlineRanker> make_lambdarank_step(const RankerRequest& request) {
  return make_on_first_model<LambdaRankStep>(request, *request.dependencies.labels);
}

void set_lambdarank_step_defaults(RankerSettings& settings, const DefaultsContext&) {
  // For a network of the default width, after 1,000 rounds of synth:mslr-like: 0.01 is too far.
  settings.trainer.learning_rate = 0.003;
}

}  // namespace olrank
