#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/relu_network.h"

namespace olrank {

/// Whether θ makes two halves of equal hidden units with opposite output weights, as symmetric
/// initialisation does: then f(x; θ) = 0 for every x. A matrix product sums the units of the two halves in
/// different orders, so that computed scores would be rounding, and not 0. Any training tells the output
/// weights apart, which are looked at first.
template <class Number>
bool halves_cancel(const NetworkShape& shape, const Number* theta) {
  if (shape.depth < 2 || shape.width % 2 != 0) return false;
  const std::int64_t half = shape.width / 2;
  const NetworkLayer last = shape.layer(shape.depth - 1);
  const Number* output = theta + last.weight;
  if (last.has_bias() && theta[last.bias] != 0) return false;
  const auto opposite = [](Number a, Number b) { return a == -b; };
  if (!std::equal(output, output + half, output + half, opposite)) return false;
  for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    if (layer.has_bias()) {
      const Number* bias = theta + layer.bias;
      if (!std::equal(bias, bias + half, bias + half)) return false;
    }
    // Where the inputs are units, those of the other half come first for the second half.
    const std::int64_t turn = l == 0 ? 0 : half;
    for (std::int64_t r = 0; r < half; ++r) {
      const Number* row = theta + layer.weight + r * layer.columns;
      const Number* twin = row + half * layer.columns;
      const std::int64_t rest = layer.columns - turn;
      if (!std::equal(row, row + rest, twin + turn)) return false;
      if (!std::equal(row + rest, row + layer.columns, twin)) return false;
    }
  }
  return true;
}

}  // namespace olrank
