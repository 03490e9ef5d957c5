#include "models/lambdarank_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/math/dcg.h"
#include "core/math/pair_loss.h"
#include "core/metrics/score_order.h"
#include "models/first_model.h"

namespace olrank {

void lambdarank_weights(std::span<const double> scores, std::span<const std::uint8_t> grades,
                        Scratch& scratch, std::span<double> weights) {
  const std::size_t docs = scores.size();
  assert(grades.size() == docs && weights.size() == docs);
  std::fill(weights.begin(), weights.end(), 0.0);
  const Scratch::Frame frame(scratch);
  // Best grades first: a document has a pair with each document of a lower grade, all behind it.
  const auto by_grade = scratch.take<std::int32_t>(docs);
  std::iota(by_grade.begin(), by_grade.end(), 0);
  std::sort(by_grade.begin(), by_grade.end(), [&](std::int32_t a, std::int32_t b) {
    const auto grade_a = grades[a];
    const auto grade_b = grades[b];
    return grade_a != grade_b ? grade_a > grade_b : a < b;
  });
  const auto grade_at = [&](std::size_t place) { return grades[by_grade[place]]; };
  if (docs == 0 || grade_at(0) == grade_at(docs - 1)) return;

  double ideal = 0.0;
  for (std::size_t rank = 0; rank < docs && grade_at(rank) > 0; ++rank) {
    ideal += dcg_gain(grade_at(rank), Gain::kExponential) *
             dcg_discount(static_cast<std::int64_t>(rank), Discount::kLog2);
  }
  const auto order = scratch.take<std::int32_t>(docs);
  order_by_score(scores, order, scratch);
  const auto discount = scratch.take<double>(docs);
  for (std::size_t rank = 0; rank < docs; ++rank) {
    discount[order[rank]] = dcg_discount(static_cast<std::int64_t>(rank), Discount::kLog2);
  }

  std::size_t worse = 0;  // the first place of a grade below that of `place`
  for (std::size_t place = 0; place < docs; ++place) {
    while (worse < docs && grade_at(worse) >= grade_at(place)) ++worse;
    if (worse == docs) break;
    const auto winner = static_cast<std::size_t>(by_grade[place]);
    const double gain = dcg_gain(grades[winner], Gain::kExponential);
    for (std::size_t other = worse; other < docs; ++other) {
      const auto loser = static_cast<std::size_t>(by_grade[other]);
      const double change = ndcg_change(gain - dcg_gain(grades[loser], Gain::kExponential),
                                        discount[winner], discount[loser], ideal);
      const double weight = sigmoid(scores[loser] - scores[winner]) * change;
      weights[winner] += weight;
      weights[loser] -= weight;
    }
  }
}

LambdaRankLabels::LambdaRankLabels(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                                   TrialKeys keys, std::vector<float> first_theta,
                                   const LabelledQueries& labels)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)), labels_(labels) {}

RankedList LambdaRankLabels::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const auto scores = scores_of(context, query, round);
  const auto measured = context.clock.measure("rank");
  list_.resize(scores.size());
  order_by_score(scores, list_, context.execution.scratch());
  return {list_, std::nullopt};
}

QueryGrades LambdaRankLabels::grades_of(const QueryDocs& query) const {
  if (query.query >= 0 && query.query < labels_.queries()) {
    const QueryGrades grades = labels_.grades_of(query.query);
    if (std::ssize(grades.of_doc) == query.docs()) return grades;
  }
  throw InvalidArgument(
      fmt::format("Ranker '{}' learns from true grades but has none for query {} with {} documents: train "
                  "it on the training part that it was made for.",
                  name(), query.query, query.docs()));
}

LearnReport LambdaRankLabels::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  const QueryGrades grades = grades_of(feedback.query);
  const auto scores = scores_of(context, feedback.query, feedback.round);
  const auto measured = context.clock.measure("train");
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto weights = scratch.take<double>(scores.size());
  lambdarank_weights(scores, grades.of_doc, scratch, weights);
  step_ = {step()};
  const bool moves = std::any_of(weights.begin(), weights.end(), [](double w) { return w != 0.0; });
  if (moves) follow_gradient(context.execution, feedback.query, weights);
  end_round();
  if (!moves) return {};
  return {{}, step_};
}

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request) {
  return make_on_first_model<LambdaRankLabels>(request, *request.dependencies.labels);
}

void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext&) {
  // For a network of the default width, after 1,000 rounds of synth:mslr-like: 0.01 is too far.
  settings.trainer.learning_rate = 0.003;
}

}  // namespace olrank
