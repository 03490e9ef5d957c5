#pragma once

#include <cstdint>
#include <functional>

#include "apps/bench/measurement.h"

namespace olrank {

/// Seconds of the device that one call of `work` takes. It is started on LibTorch's current stream, which
/// may not be the default one, captured as a graph of many calls and replayed between two events, so that
/// neither starting kernels nor the host's own work is in it.
Spread device_seconds(const std::function<void()>& work);

/// The same without a graph, for what cannot be captured: started call after call.
Spread started_seconds(const std::function<void()>& work);

}  // namespace olrank
