#include "models/baselines/lambdarank_step.h"

#include <algorithm>
#include <utility>

#include "core/metrics/score_order.h"
#include "core/ops/list_loss.h"
#include "models/baselines/first_model.h"
#include "models/baselines/lambdarank_labels.h"

namespace olrank {

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
