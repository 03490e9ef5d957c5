#pragma once

#include <cstdint>

#include "core/device/device_network.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Copies documents to `inputs` [docs × features], with `scale` each column's values as shares of their
/// range. `bad` becomes the least it was and has met: the number of a value that is not finite, or of
/// one beyond ±limit plus docs × features. Both are on the device.
void query_inputs(Stream stream, const GivenDocs& given, bool scale, float limit, float* inputs,
                  unsigned long long* bad);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
