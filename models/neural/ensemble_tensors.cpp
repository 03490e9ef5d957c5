#include "models/neural/ensemble_tensors.h"

#include <fmt/format.h>

#include <utility>

#include "models/neural/ranker_network.h"

namespace olrank {

ModelTensors ensemble_tensors(const NetworkSettings& settings, const NetworkShape& shape,
                              std::span<const std::span<const float>> thetas) {
  ModelTensors model;
  for (std::size_t number = 0; number < thetas.size(); ++number) {
    ModelTensors one = network_tensors(settings, shape, thetas[number]);
    if (number == 0) model.architecture = one.architecture;
    for (auto& tensor : one.tensors) {
      tensor.name = fmt::format("members.{}.{}", number, tensor.name);
      model.tensors.push_back(std::move(tensor));
    }
  }
  model.architecture.emplace_back("members", fmt::format("{}", thetas.size()));
  return model;
}

}  // namespace olrank
