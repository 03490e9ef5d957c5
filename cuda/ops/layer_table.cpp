#include "cuda/ops/layer_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

LayerTable::LayerTable(const TangentShape& shape)
    : depth(std::ssize(shape.layers())), parameters(shape.parameters()) {
  if (depth > kMostDeviceLayers) {
    throw InvalidArgument(fmt::format(
        "A scoring function on a device has at most {} layers of parameters, not {}: choose fewer, or "
        "device = cpu.",
        kMostDeviceLayers, depth));
  }
  const std::span<const NetworkLayer> layers = shape.layers();
  std::copy(layers.begin(), layers.end(), layer);
  for (std::int64_t l = 0; l < depth; ++l) first_unit[l + 1] = first_unit[l] + layer[l].rows;
  const std::int64_t rows = layers.front().rows;
  const auto hidden = layers.first(layers.size() - 1);
  const bool equal =
      std::all_of(hidden.begin(), hidden.end(), [&](const NetworkLayer& one) { return one.rows == rows; });
  if (equal && layers.back().rows <= rows) width = rows;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
