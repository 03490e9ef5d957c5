#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/io/safetensors_reader.h"
#include "core/ops/relu_network.h"
#include "models/network_settings.h"

namespace olrank {

/// A model as its file describes it.
struct LoadedModel {
  NetworkSettings settings;  // of a linear model, only `network` counts
  NetworkShape shape;
  std::vector<std::vector<float>> members;  // θ of each member of an ensemble; one θ otherwise
  ModelMetadata metadata;                   // of the whole file, normalisation included

  bool is_linear() const { return settings.network == NetworkForm::kLinear; }
};

/// Reads a model.safetensors of a trial. Throws DataError for a file that is damaged or holds a model of an
/// architecture that olrank does not have: every tensor has to be there in its shape, and no other.
LoadedModel load_model(const std::filesystem::path& path);

/// Throws InvalidArgument when the model is not of this shape; `origin` names its file.
void require_shape(const LoadedModel& model, const NetworkShape& shape, const std::string& origin);

}  // namespace olrank
