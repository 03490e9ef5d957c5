#include "cuda/ops/layer_table.h"

#include <algorithm>

#include "core/throw_error.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

LayerTable::LayerTable(const TangentShape& shape)
    : depth(std::ssize(shape.layers())), parameters(shape.parameters()) {
  const std::span<const NetworkLayer> layers = shape.layers();
  width = layers.front().rows;
  const auto hidden = layers.first(layers.size() - 1);
  if (depth > kMostDeviceLayers || layers.back().rows > width ||
      std::any_of(hidden.begin(), hidden.end(),
                  [&](const NetworkLayer& one) { return one.rows != width; })) {
    throw_error<InvalidArgument>(
        "A network on a device has at most {} layers of parameters, of equal widths: choose others, or "
        "device = cpu.",
        kMostDeviceLayers);
  }
  std::copy(layers.begin(), layers.end(), layer);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
