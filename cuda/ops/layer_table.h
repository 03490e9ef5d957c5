#pragma once

#include <cstdint>

#include "core/device/network_spec.h"
#include "core/math/portable_exp.h"
#include "core/ops/tangent_factors.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// All layers of a network's gradient, as a kernel argument. Units are the rows of all layers, one layer
/// after another.
struct LayerTable {
  std::int64_t depth = 0;
  std::int64_t parameters = 0;
  std::int64_t width = 0;  // rows of each layer but the last, which has no more
  NetworkLayer layer[kMostDeviceLayers];

  /// Throws InvalidArgument for more than kMostDeviceLayers, and for layers that are not a network's.
  explicit LayerTable(const TangentShape& shape);

  OLRANK_HOST_DEVICE std::int64_t units() const { return (depth - 1) * width + layer[depth - 1].rows; }
  /// The number of a unit's layer.
  OLRANK_HOST_DEVICE std::int64_t layer_number(std::int64_t unit) const { return unit / width; }
  OLRANK_HOST_DEVICE const NetworkLayer& layer_of(std::int64_t unit) const {
    return layer[layer_number(unit)];
  }
  /// A unit's row in its layer.
  OLRANK_HOST_DEVICE std::int64_t row_of(std::int64_t unit) const { return unit % width; }
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
