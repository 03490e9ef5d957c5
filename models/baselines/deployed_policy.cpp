#include "models/baselines/deployed_policy.h"

#include <algorithm>
#include <utility>

#include "models/baselines/plackett_luce_gradient.h"

namespace olrank {
DeployedPolicyRanker::DeployedPolicyRanker(std::unique_ptr<ScoreModel> model,
                                           const RankerSettings& settings, TrialKeys keys,
                                           std::vector<float> first_theta)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
      list_key_(keys.key(Purpose::kList)),
      refresh_rounds_(settings.bandit.refresh_rounds),
      deployed_(theta().begin(), theta().end()) {}

RankedList DeployedPolicyRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  scores_of(context, query, round);  // for describe() and learn()
  const auto measured = context.clock.measure("rank");
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<double>(query.docs());
  score_with(context.execution, deployed_, query, round, scores);
  draw_plackett_luce(scores, list_key_, round, scratch, list_, propensity_);
  return shown_list();
}

ScoreLists DeployedPolicyRanker::lists() const {
  return [model = shared_model(), deployed = deployed_, key = list_key_](
             ExecutionContext& context, const RankingTask& task, std::span<const double> /*learned*/,
             std::vector<std::int32_t>& list, std::vector<double>& propensity) {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto narrow = scratch.take<float>(task.docs.docs);
    model->score(context, deployed, task.docs, narrow);
    const auto scores = scratch.take<double>(narrow.size());
    std::copy(narrow.begin(), narrow.end(), scores.begin());
    draw_plackett_luce(scores, key, task.round, scratch, list, propensity);
  };
}

void DeployedPolicyRanker::end_policy_round() {
  end_round();
  if (++since_refresh_ < refresh_rounds_) return;
  since_refresh_ = 0;
  deployed_.assign(theta().begin(), theta().end());
}

void DeployedPolicyRanker::fields(StateFields& state) {
  ScoreModelRanker::fields(state);
  state.sized("prpo.safe", deployed_);
  state.numbers("prpo.since_refresh", since_refresh_);
}

}  // namespace olrank
