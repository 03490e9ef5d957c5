#include "models/neural/p2neurrank.h"

#include "models/neural/network_belief.h"
#include "models/neural/network_learner.h"
#include "models/neural/ranker_device.h"
#include "models/neural/ranker_network.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {

std::unique_ptr<OnlineRanker> make_p2neurrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const EnsembleSpec ensemble{settings.posterior.members, settings.posterior.noise_variance};
  const std::shared_ptr<const TangentModel> model =
      make_tangent_model(settings.network, request.features, libtorch_gpu(request.dependencies.device));
  CertainOrderRanker::Parts parts;
  parts.belief = std::make_unique<NetworkVotes>(model);
  parts.learner = std::make_unique<NetworkLearner>(model, settings, request.keys, ensemble,
                                                   request.dependencies.first_thetas);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_p2neurrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  // Chosen by the committed sweeps: docs/DEFAULTS.md.
  if (context.protocol == ProtocolName::kPaper) settings.posterior.lambda = 1.0;
  if (context.protocol == ProtocolName::kRecommended) set_recommended_network(settings, context.chosen);
}

}  // namespace olrank
