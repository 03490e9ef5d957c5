#include "models/baselines/pdgd.h"

#include <algorithm>
#include <utility>

#include "core/feedback/preference_pairs.h"
#include "models/baselines/first_model.h"
#include "models/baselines/plackett_luce_gradient.h"

namespace olrank {
PdgdRanker::PdgdRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                       std::vector<float> first_theta)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
      list_key_(keys.key(Purpose::kList)) {}

ScoreLists PdgdRanker::lists() const {
  return
      [key = list_key_](ExecutionContext& context, const RankingTask& task, std::span<const double> scores,
                        std::vector<std::int32_t>& list, std::vector<double>& propensity) {
        draw_plackett_luce(scores, key, task.round, context.scratch(), list, propensity);
      };
}

LearnReport PdgdRanker::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  preference_pairs({.pairs = PairRule::kAll, .debias = {}}, feedback.shown, feedback.clicks,
                   RngStream(list_key_, feedback.round), pairs_);
  if (!pairs_.empty()) {
    const auto scores = scores_of(context, feedback.query, feedback.round);
    const auto measured = context.clock.measure("train");
    Scratch& scratch = context.execution.scratch();
    const Scratch::Frame frame(scratch);
    const auto weights = scratch.take<double>(scores.size());
    plackett_luce_pair_weights(scores, feedback.shown, feedback.clicks, scratch, weights);
    follow_gradient(context.execution, feedback.query, weights);
  }
  end_round();
  return {pairs_, {}};
}

std::unique_ptr<OnlineRanker> make_pdgd(const RankerRequest& request) {
  return make_on_first_model<PdgdRanker>(request);
}

void set_pdgd_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  // The papers print 0.999977, the authors' code has another nine.
  settings.trainer.learning_rate_decay =
      context.protocol == ProtocolName::kReference ? 0.9999977 : 0.999977;
}

}  // namespace olrank
