#include "models/linear/p2linrank.h"

#include "models/linear/linear_belief.h"
#include "models/linear/linear_learner.h"
#include "models/linear/linear_ranking.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {

std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const EnsembleSpec ensemble{settings.posterior.members, settings.posterior.noise_variance};
  CertainOrderRanker::Parts parts;
  parts.belief = std::make_unique<LinearVotes>(request.features);
  parts.learner = std::make_unique<LinearLearner>(request.features, settings, request.keys, ensemble);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  set_newton_defaults(settings.trainer);
  if (context.protocol == ProtocolName::kReference) return;
  // Chosen by their worst case: docs/DEFAULTS.md.
  settings.posterior.noise_variance = 0.003;
  settings.posterior.lambda = 100.0;
  if (context.protocol == ProtocolName::kRecommended) settings.feedback.pairs = PairRule::kMatched;
}

}  // namespace olrank
