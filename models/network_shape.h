#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"
#include "models/network_settings.h"

namespace olrank {

/// The network that the settings ask for. Throws InvalidArgument for what makes none.
NetworkShape network_shape(const NetworkSettings& settings, std::int64_t inputs);

/// How a network of these settings starts: symmetric where it is ntk or asked for, else uniform.
Initialisation initialisation_of(const NetworkSettings& settings);

}  // namespace olrank
