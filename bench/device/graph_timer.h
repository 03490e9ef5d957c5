#pragma once

#include <cstdint>
#include <functional>

#include "apps/bench/measurement.h"

namespace olrank {

/// Device seconds per call of `work`. Many calls are captured as a graph on LibTorch's current stream,
/// which must not be the default stream, and replayed between two events, so that launch overhead and host
/// work are excluded.
Spread device_seconds(const std::function<void()>& work);

/// The same without a graph, for work that cannot be captured: call after call.
Spread started_seconds(const std::function<void()>& work);

}  // namespace olrank
