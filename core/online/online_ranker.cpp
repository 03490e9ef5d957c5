#include "core/online/online_ranker.h"

#include <fmt/format.h>

#include "core/version.h"

namespace olrank {

std::string model_bytes(const ModelTensors& model, const ModelMetadata& metadata) {
  std::vector<NamedTensor> tensors;
  for (const auto& tensor : model.tensors) tensors.push_back({tensor.name, tensor.shape, tensor.values});
  ModelMetadata about = {{"format", "pt"}, {"producer", fmt::format("olrank {}", version())}};
  about.insert(about.end(), model.architecture.begin(), model.architecture.end());
  about.insert(about.end(), metadata.begin(), metadata.end());
  return checked_safetensors_bytes(tensors, std::move(about));
}

}  // namespace olrank
