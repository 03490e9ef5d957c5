#include "models/neural/confident_network.h"

#include <utility>

#include "models/certain_order_ranker.h"
#include "models/neural/device_home.h"
#include "models/neural/network_belief.h"
#include "models/neural/network_learner.h"
#include "models/neural/ranker_network.h"
#include "models/posterior/posterior_on_device.h"

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

/// Where the ranker lives: on the host, or at its home on a device.
std::unique_ptr<Posterior> posterior_of(const RankerRequest& request, const TangentModel& model,
                                        Covariance covariance) {
  const PosteriorSpec spec = spec_of(request, model, covariance);
  const DeviceHome* home = request.dependencies.home;
  if (home == nullptr || covariance == Covariance::kNone) return make_posterior(spec);
  auto device = home->make_posterior(device_posterior_request(spec, home->device));
  const ModelSize size{request.features, spec.shape, model.reads_lists()};
  const FormPolicy::Room room = room_on_device(request.settings, size, *home, device->grows_in_place());
  return std::make_unique<PosteriorOnDevice>(spec, room, std::move(device));
}

}  // namespace

std::unique_ptr<OnlineRanker> make_confident_network(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const std::shared_ptr<const TangentModel> model =
      make_tangent_model(settings.network, request.features, libtorch_gpu(request.dependencies.home));
  CertainOrderRanker::Parts parts;
  if (settings.posterior.has_shadow()) {
    parts.shadow = std::make_unique<WidthShadow>(model->tangent_shape(),
                                                 posterior_of(request, *model, Covariance::kFull));
  }
  parts.belief =
      std::make_unique<NetworkWidths>(model, posterior_of(request, *model, settings.posterior.covariance));
  parts.learner = std::make_unique<NetworkLearner>(model, settings, request.keys, std::nullopt,
                                                   request.dependencies.first_thetas);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_olranknet_defaults(RankerSettings& settings, const DefaultsContext& context) {
  // Chosen by the committed sweeps: docs/DEFAULTS.md.
  if (context.protocol == ProtocolName::kPaper) settings.explore.alpha = 0.03;
}

}  // namespace olrank
