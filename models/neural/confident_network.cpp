#include "models/neural/confident_network.h"

#include "models/certain_order_ranker.h"
#include "models/neural/network_belief.h"
#include "models/neural/network_learner.h"
#include "models/neural/ranker_network.h"

namespace olrank {
namespace {

PosteriorSpec spec_of(const RankerRequest& request, const TangentModel& model, Covariance covariance) {
  const RankerSettings& settings = request.settings;
  PosteriorSpec spec;
  spec.shape = model.tangent_shape();
  spec.covariance = covariance;
  spec.form = settings.posterior.form;
  spec.budget = settings.posterior.budget;
  spec.lambda = settings.posterior.lambda;
  spec.scale = covariance_scale(settings.network);
  const std::int64_t memory = request.dependencies.memory;
  spec.memory = covariance_memory(settings.posterior, memory > 0 ? memory : available_memory());
  return spec;
}

}  // namespace

std::unique_ptr<OnlineRanker> make_confident_network(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const std::shared_ptr<const TangentModel> model = make_tangent_model(settings.network, request.features);
  CertainOrderRanker::Parts parts;
  if (settings.posterior.has_shadow()) {
    const PosteriorSpec exact = spec_of(request, *model, Covariance::kFull);
    parts.shadow = std::make_unique<WidthShadow>(exact.shape, make_posterior(exact));
  }
  auto posterior = make_posterior(spec_of(request, *model, settings.posterior.covariance));
  parts.belief = std::make_unique<NetworkWidths>(model, std::move(posterior));
  parts.learner = std::make_unique<NetworkLearner>(model, settings, request.keys, std::nullopt,
                                                   request.dependencies.first_thetas);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_olranknet_defaults(RankerSettings& settings, const DefaultsContext& context) {
  // Chosen by the committed sweeps: docs/DEFAULTS.md.
  if (context.protocol == ProtocolName::kPaper) settings.explore.alpha = 0.03;
}

}  // namespace olrank
