#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"
#include "models/skeleton/network_settings.h"

namespace olrank {

/// The network that the settings ask for. Throws InvalidArgument for settings that do not describe one.
NetworkShape network_shape(const NetworkSettings& settings, std::int64_t inputs);

/// The factor of the scores: √m for ntk, else 1.
double output_scale_of(const NetworkSettings& settings);

/// How a network with these settings starts: symmetric for ntk or if set, else uniform.
Initialisation initialisation_of(const NetworkSettings& settings);

}  // namespace olrank
