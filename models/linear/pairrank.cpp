#include "models/linear/pairrank.h"

#include "models/linear/linear_belief.h"
#include "models/linear/linear_learner.h"
#include "models/linear/linear_ranking.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {

std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  RowCovariance covariance(settings.posterior.covariance, request.features, settings.posterior.lambda);
  CertainOrderRanker::Parts parts;
  parts.belief = std::make_unique<LinearWidths>(request.features, std::move(covariance));
  parts.learner = std::make_unique<LinearLearner>(request.features, settings, request.keys, std::nullopt);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  set_newton_defaults(settings.trainer);
  if (context.protocol == ProtocolName::kReference) return;
  // Chosen by their worst case, those of the paper's pairs by the first sweeps: docs/DEFAULTS.md.
  settings.posterior.lambda = 100.0;
  if (context.protocol == ProtocolName::kPaper) {
    settings.explore.alpha = 0.003;
    settings.explore.c1 = 0.0003;
    return;
  }
  settings.feedback.pairs = PairRule::kMatched;
  settings.explore.alpha = 0.1;
  settings.explore.c1 = 0.01;
  settings.explore.c2 = 0.1;
  settings.explore.delta = 0.01;
}

}  // namespace olrank
