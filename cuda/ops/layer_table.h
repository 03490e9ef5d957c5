#pragma once

#include <cstdint>

#include "core/device/most_layers.h"
#include "core/math/host_device.h"
#include "core/ops/tangent_shape.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// All layers of a scoring function's gradient, as a kernel argument. Units are the rows of all layers, one
/// layer after another.
struct LayerTable {
  std::int64_t depth = 0;
  std::int64_t parameters = 0;
  /// Rows of each layer but the last, which has no more, so that a unit's layer is a division: a network.
  /// 0 where layers differ, and a unit's layer is looked up.
  std::int64_t width = 0;
  NetworkLayer layer[kMostDeviceLayers];
  std::int64_t first_unit[kMostDeviceLayers + 1] = {};  // units before each layer, then all of them

  /// Throws InvalidArgument for more than kMostDeviceLayers.
  explicit LayerTable(const TangentShape& shape);

  OLRANK_HOST_DEVICE std::int64_t units() const { return first_unit[depth]; }
  /// The number of a unit's layer.
  OLRANK_HOST_DEVICE std::int64_t layer_number(std::int64_t unit) const {
    if (width > 0) return unit / width;
    std::int64_t number = 0;
    while (unit >= first_unit[number + 1]) ++number;
    return number;
  }
  OLRANK_HOST_DEVICE const NetworkLayer& layer_of(std::int64_t unit) const {
    return layer[layer_number(unit)];
  }
  /// A unit's row in its layer.
  OLRANK_HOST_DEVICE std::int64_t row_of(std::int64_t unit) const {
    return width > 0 ? unit % width : unit - first_unit[layer_number(unit)];
  }
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
