#include "models/baselines/prpo.h"

#include <utility>

#include "models/baselines/first_model.h"
#include "models/baselines/plackett_luce_gradient.h"

namespace olrank {

PrpoRanker::PrpoRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                       std::vector<float> first_theta)
    : DeployedPolicyRanker(std::move(model), settings, keys, std::move(first_theta)),
      clip_(settings.bandit.exposure_clip) {}

void PrpoRanker::find_advantages(const Feedback& feedback) {
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

LearnReport PrpoRanker::learn(RoundContext& context, const Feedback& feedback) {
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

void PrpoRanker::fields(StateFields& state) {
  DeployedPolicyRanker::fields(state);
  state.any("prpo.clicks_below", clicks_below_);
  state.any("prpo.lists", lists_);
  state.require(clicks_below_.size() == lists_.size(), "Its counts of clicks and lists differ in length.");
}

std::unique_ptr<OnlineRanker> make_prpo(const RankerRequest& request) {
  return make_on_first_model<PrpoRanker>(request);
}

void set_prpo_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  settings.trainer.learning_rate_decay = 1.0;
}

}  // namespace olrank
