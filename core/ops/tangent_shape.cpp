#include "core/ops/tangent_shape.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace olrank {

TangentShape::TangentShape(const NetworkShape& shape) {
  for (std::int64_t l = 0; l < shape.depth; ++l) layers_.push_back(shape.layer(l));
  measure();
}

TangentShape::TangentShape(std::vector<NetworkLayer> layers) : layers_(std::move(layers)) {
  std::int64_t place = 0;
  for (NetworkLayer& layer : layers_) {
    layer.input = place;
    layer.delta = place + layer.columns;
    place += layer.columns + layer.rows;
  }
  measure();
}

TangentShape TangentShape::of_rows(std::int64_t parameters) {
  NetworkLayer layer;
  layer.rows = 1;
  layer.columns = parameters;
  return TangentShape(std::vector{layer});
}

void TangentShape::measure() {
  for (const NetworkLayer& layer : layers_) {
    assert(layer.weight == parameters_);
    assert(!layer.has_bias() || layer.bias == layer.weight + layer.rows * layer.columns);
    parameters_ += layer.rows * layer.unit_parameters();
    factors_ += layer.rows + layer.columns;
    units_ += layer.rows;
    most_rows_ = std::max(most_rows_, layer.rows);
    most_columns_ = std::max(most_columns_, layer.columns);
  }
}

}  // namespace olrank
