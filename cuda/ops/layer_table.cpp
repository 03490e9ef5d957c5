#include "cuda/ops/layer_table.h"

#include <fmt/format.h>

#include "core/error.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

LayerTable::LayerTable(const NetworkShape& shape)
    : depth(shape.depth), width(shape.width), parameters(shape.parameters()) {
  if (depth > kMostLayers) {
    throw InvalidArgument(fmt::format(
        "A network on a device has at most {} weight layers, not {}: choose fewer, or device = cpu.",
        kMostLayers, depth));
  }
  for (std::int64_t l = 0; l < depth; ++l) layer[l] = shape.layer(l);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
