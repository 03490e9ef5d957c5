#include "models/neural/confident_network.h"

#include <utility>

#include "models/neural/network_belief.h"
#include "models/neural/network_learner.h"
#include "models/neural/ranker_device.h"
#include "models/neural/ranker_network.h"
#include "models/posterior/posterior.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {
namespace {

std::unique_ptr<Posterior> made(PosteriorSpec spec, const RankerRequest& request) {
  const std::int64_t memory = request.dependencies.memory;
  spec.memory = covariance_memory(request.settings.posterior, memory > 0 ? memory : available_memory());
  return make_posterior(spec);
}

}  // namespace

std::unique_ptr<OnlineRanker> make_confident_network(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const std::shared_ptr<const TangentModel> model =
      make_tangent_model(settings.network, request.features, libtorch_gpu(request.dependencies.device));
  const PosteriorSpec spec = posterior_spec(settings, model->tangent_shape());
  CertainOrderRanker::Parts parts;
  if (spec.has_shadow)
    parts.shadow = std::make_unique<WidthShadow>(spec.shape, made(spec.shadow(), request));
  parts.belief = std::make_unique<NetworkWidths>(model, made(spec, request));
  parts.learner = std::make_unique<NetworkLearner>(model, settings, request.keys, std::nullopt,
                                                   request.dependencies.first_thetas);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_olranknet_defaults(RankerSettings& settings, const DefaultsContext& context) {
  // Chosen by the committed sweeps: docs/DEFAULTS.md.
  if (context.protocol == ProtocolName::kPaper) settings.explore.alpha = 0.03;
  if (context.protocol == ProtocolName::kRecommended) set_recommended_network(settings, context.chosen);
}

}  // namespace olrank
