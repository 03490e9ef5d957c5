#include "models/deployed_policy.h"

#include <algorithm>
#include <utility>

#include "models/frozen_score_model.h"
#include "models/plackett_luce_gradient.h"

namespace olrank {
namespace {

/// Scores by the policy that learns, lists by the one that is deployed.
class FrozenDeployedPolicy : public FrozenScoreModel {
 public:
  FrozenDeployedPolicy(std::shared_ptr<const ScoreModel> model, std::span<const float> theta,
                       std::span<const float> deployed, PhiloxKey list_key)
      : FrozenScoreModel(model, theta),
        model_(std::move(model)),
        deployed_(deployed.begin(), deployed.end()),
        list_key_(list_key) {}

 private:
  void explore(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto narrow = scratch.take<float>(ranking.scores.size());
    model_->score(context, deployed_, task.docs, narrow);
    const auto scores = scratch.take<double>(narrow.size());
    std::copy(narrow.begin(), narrow.end(), scores.begin());
    draw_plackett_luce(scores, list_key_, task.round, scratch, ranking.list, ranking.propensity);
  }

  std::shared_ptr<const ScoreModel> model_;
  std::vector<float> deployed_;
  PhiloxKey list_key_;
};

}  // namespace

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

std::shared_ptr<const FrozenRanker> DeployedPolicyRanker::freeze() const {
  return std::make_shared<FrozenDeployedPolicy>(shared_model(), theta(), deployed_, list_key_);
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
