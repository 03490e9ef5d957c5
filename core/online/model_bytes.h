#pragma once

#include <string>

#include "core/io/safetensors.h"
#include "core/online/online_ranker.h"

namespace olrank {

/// The bytes of a model file: its tensors, its architecture and then `metadata`.
std::string model_bytes(const ModelTensors& model, const ModelMetadata& metadata);

}  // namespace olrank
