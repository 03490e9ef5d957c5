#include "models/baselines/baselines.h"

#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"

namespace olrank {

FirstModel first_model(const RankerRequest& request) {
  const NetworkSettings& settings = request.settings.network;
  const auto given = request.dependencies.first_thetas;
  const bool linear = settings.network == NetworkForm::kLinear;
  FirstModel first;
  if (!given.empty()) first.theta = given.front();
  if (linear) {
    first.model = std::make_unique<LinearModel>(request.features);
    return first;
  }
  auto model = make_tangent_model(settings, request.features);
  if (given.empty()) first.theta = model->first_parameters(request.keys.key(Purpose::kInitialisation));
  first.model = std::move(model);
  return first;
}

}  // namespace olrank
