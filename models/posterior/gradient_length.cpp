#include "models/posterior/gradient_length.h"

#include <cstdint>

#include "core/covariance/covariance_checks.h"

namespace olrank {

double gradient_length_sq(const TangentShape& shape, const float* factors) {
  double sum = 0.0;
  for (const NetworkLayer& layer : shape.layers()) {
    double inputs = layer.has_bias() ? 1.0 : 0.0;
    for (std::int64_t k = 0; k < layer.columns; ++k)
      inputs += double{factors[layer.input + k]} * double{factors[layer.input + k]};
    double deltas = 0.0;
    for (std::int64_t k = 0; k < layer.rows; ++k)
      deltas += double{factors[layer.delta + k]} * double{factors[layer.delta + k]};
    sum += inputs * deltas;
  }
  return sum;
}

void require_information(const TangentShape& shape, double lambda, double scale, TangentFactors docs,
                         std::span<const PreferencePair> pairs) {
  for (const PreferencePair& pair : pairs) {
    for (const std::int32_t doc : {pair.winner, pair.loser})
      require_information(lambda, scale * gradient_length_sq(shape, docs.row(shape, doc)));
  }
}

}  // namespace olrank
