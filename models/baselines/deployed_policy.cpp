#include "models/baselines/deployed_policy.h"

#include <algorithm>
#include <utility>

#include "models/baselines/baselines.h"
#include "models/baselines/pdgd.h"

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

namespace {

/// Proximal ranking policy optimisation, online. Gupta, Oosterhuis and de Rijke, "Practical and robust
/// safety guarantees for advanced counterfactual learning to rank", CIKM 2024: the objective gives no
/// reward for exposure beyond a factor of what a safe policy gives. Here the safe policy shows the lists,
/// as Plackett-Luce draws over its scores, and every `refresh_rounds` rounds it becomes the policy that has
/// been learned from them. Each round takes one step.
/// Deviation: a document's exposure is that at its rank, given the documents above it, for which the ratio
/// is known exactly; and a rank's reward is the clicks from it downwards, above their mean so far, which
/// needs no estimate of relevance.
class PrpoRanker : public DeployedPolicyRanker {
 public:
  PrpoRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
             std::vector<float> first_theta)
      : DeployedPolicyRanker(std::move(model), settings, keys, std::move(first_theta)),
        clip_(settings.bandit.exposure_clip) {}

  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    const auto scores = scores_of(context, feedback.query, feedback.round);
    {
      const auto measured = context.clock.measure("train");
      Scratch& scratch = context.execution.scratch();
      const Scratch::Frame frame(scratch);
      const auto safe_scores = scratch.take<double>(scores.size());
      score_with(context.execution, deployed(), feedback.query, feedback.round, safe_scores);
      find_advantages(feedback);
      const auto weights = scratch.take<double>(scores.size());
      proximal_weights({scores, safe_scores, feedback.shown, advantages_, clip_}, scratch, weights);
      follow_gradient(context.execution, feedback.query, weights);
    }
    end_policy_round();
    return {};
  }
  void fields(StateFields& state) override {
    DeployedPolicyRanker::fields(state);
    state.any("prpo.clicks_below", clicks_below_);
    state.any("prpo.lists", lists_);
    state.require(clicks_below_.size() == lists_.size(),
                  "Its counts of clicks and lists differ in length.");
  }

 private:
  /// Finds how far clicks from each rank downwards are above their mean so far, which then takes them in.
  void find_advantages(const Feedback& feedback) {
    const std::size_t shown = feedback.shown.size();
    if (lists_.size() < shown) {
      lists_.resize(shown, 0);
      clicks_below_.resize(shown, 0.0);
    }
    advantages_.assign(shown, 0.0);
    double clicks = 0.0;
    for (std::size_t rank = shown; rank-- > 0;) {
      clicks += feedback.clicks[rank] != 0 ? 1.0 : 0.0;
      const double mean = lists_[rank] == 0 ? 0.0 : clicks_below_[rank] / static_cast<double>(lists_[rank]);
      advantages_[rank] = clicks - mean;
      clicks_below_[rank] += clicks;
      ++lists_[rank];
    }
  }

  double clip_;

  // State.
  std::vector<double> clicks_below_;  // by rank: clicks from it downwards in all rounds so far
  std::vector<std::int64_t> lists_;   // by rank: lists that had it

  std::vector<double> advantages_;  // by rank
};

}  // namespace

std::unique_ptr<OnlineRanker> make_prpo(const RankerRequest& request) {
  return make_on_first_model<PrpoRanker>(request);
}

void set_prpo_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  settings.trainer.learning_rate_decay = 1.0;
}

}  // namespace olrank
