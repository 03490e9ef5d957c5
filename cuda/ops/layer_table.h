#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/ops/relu_network.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// All layers of a network, as a kernel argument.
struct LayerTable {
  static constexpr std::int64_t kMostLayers = 16;

  std::int64_t depth = 0;
  std::int64_t width = 1;
  std::int64_t parameters = 0;
  NetworkLayer layer[kMostLayers];

  /// Throws InvalidArgument for more than kMostLayers.
  explicit LayerTable(const NetworkShape& shape);

  /// Units of all layers; the last is the single output unit.
  OLRANK_HOST_DEVICE std::int64_t units() const { return (depth - 1) * width + 1; }
  OLRANK_HOST_DEVICE const NetworkLayer& layer_of(std::int64_t unit) const { return layer[unit / width]; }
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
