#include "models/baselines/ranknet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/math/pair_loss.h"
#include "core/metrics/score_order.h"
#include "models/baselines/epsilon_greedy.h"
#include "models/baselines/first_model.h"

namespace olrank {
namespace {

double exploration_of(const RankerSettings& settings) {
  if (settings.bandit.exploration == SimpleExploration::kGreedy) return 0.0;
  const double epsilon = settings.bandit.epsilon;
  if (epsilon > 0.0 && epsilon <= 1.0) return epsilon;
  throw InvalidArgument(fmt::format(
      "Ranker '{}' has exploration = \"epsilon\", so epsilon must be above 0 and at most 1, not {}: set "
      "--epsilon 0.1, or exploration = \"greedy\".",
      settings.name, epsilon));
}

}  // namespace

RankNetRanker::RankNetRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                             TrialKeys keys, std::vector<float> first_theta)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
      feedback_(settings.feedback),
      epsilon_(exploration_of(settings)),
      list_key_(keys.key(Purpose::kList)),
      batch_key_(keys.key(Purpose::kBatch)) {}

ScoreLists RankNetRanker::lists() const {
  return [epsilon = epsilon_, key = list_key_](
             ExecutionContext& context, const RankingTask& task, std::span<const double> scores,
             std::vector<std::int32_t>& list, std::vector<double>& propensity) {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto best_first = scratch.take<std::int32_t>(scores.size());
    order_by_score(scores, best_first, scratch);
    list.assign(best_first.begin(), best_first.end());
    propensity.assign(scores.size(), 1.0);
    if (epsilon > 0.0) epsilon_greedy_list(best_first, epsilon, key, task.round, scratch, list, propensity);
  };
}

LearnReport RankNetRanker::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  preference_pairs(feedback_, feedback.shown, feedback.clicks, RngStream(batch_key_, feedback.round),
                   pairs_);
  loss_pairs(feedback_, feedback, batch_key_, pairs_, loss_);
  if (loss_.pairs.empty()) {
    end_round();
    return {};
  }
  const auto scores = scores_of(context, feedback.query, feedback.round);
  const auto measured = context.clock.measure("train");
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto weights = scratch.take<double>(scores.size());
  std::fill(weights.begin(), weights.end(), 0.0);
  for (const PreferencePair& pair : loss_.pairs) {
    const auto winner = static_cast<std::size_t>(pair.winner);
    const auto loser = static_cast<std::size_t>(pair.loser);
    const double weight = sigmoid(scores[loser] - scores[winner]);
    weights[winner] += weight;
    weights[loser] -= weight;
  }
  step_ = {step()};
  follow_gradient(context.execution, feedback.query, weights);
  end_round();
  return {pairs_, step_};
}

std::unique_ptr<OnlineRanker> make_ranknet(const RankerRequest& request) {
  return make_on_first_model<RankNetRanker>(request);
}

void set_ranknet_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  if (context.protocol == ProtocolName::kPaper) settings.trainer.learning_rate = 0.01;
  if (context.protocol != ProtocolName::kRecommended) return;
  // Chosen by their worst case: docs/DEFAULTS.md.
  settings.feedback.pairs = PairRule::kMatched;
  settings.trainer.learning_rate = 0.003;
}

}  // namespace olrank
