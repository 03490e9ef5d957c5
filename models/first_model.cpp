#include "models/first_model.h"

#include "models/linear/linear_model.h"
#include "models/neural/ranker_network.h"

namespace olrank {

FirstModel first_model(const RankerRequest& request) {
  const NetworkSettings& settings = request.settings.network;
  const auto given = request.dependencies.first_thetas;
  const bool linear = settings.network == NetworkForm::kLinear;
  FirstModel first;
  if (linear) {
    first.model = std::make_unique<LinearModel>(request.features);
  } else {
    first.model = std::make_unique<NetworkModel>(settings, request.features);
  }
  if (!given.empty()) {
    first.theta = given.front();
  } else if (!linear) {
    first.theta = first_parameters(settings, network_shape(settings, request.features),
                                   request.keys.key(Purpose::kInitialisation));
  }
  return first;
}

}  // namespace olrank
