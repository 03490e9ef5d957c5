#pragma once

#include <span>

#include "core/online/online_ranker.h"
#include "core/ops/relu_network.h"
#include "models/network_settings.h"

namespace olrank {

/// The members' tensors side by side: "members.0.layers.0.weight", …
ModelTensors ensemble_tensors(const NetworkSettings& settings, const NetworkShape& shape,
                              std::span<const std::span<const float>> thetas);

}  // namespace olrank
