#include <algorithm>
#include <cassert>

#include "core/ops/relu_layers.h"
#include "core/ops/tangent_factors.h"

namespace olrank {
namespace {

/// Calls part(layer, row, first column, end column, offset) for each run of parameters of one row of
/// weights in [begin, end), and bias(layer, row, offset) for each bias; offsets are from `begin`.
template <class Part, class Bias>
void for_parameters(const TangentShape& shape, std::int64_t begin, std::int64_t end, const Part& part,
                    const Bias& bias) {
  for (const NetworkLayer& layer : shape.layers()) {
    const std::int64_t first = std::max(begin, layer.weight);
    const std::int64_t last = std::min(end, layer.weight + layer.rows * layer.columns);
    for (std::int64_t k = first; k < last;) {
      const std::int64_t row = (k - layer.weight) / layer.columns;
      const std::int64_t row_begin = layer.weight + row * layer.columns;
      const std::int64_t stop = std::min(last, row_begin + layer.columns);
      part(layer, row, k - row_begin, stop - row_begin, k - begin);
      k = stop;
    }
    if (!layer.has_bias()) continue;
    for (std::int64_t k = std::max(begin, layer.bias); k < std::min(end, layer.bias + layer.rows); ++k) {
      bias(layer, k - layer.bias, k - begin);
    }
  }
}

}  // namespace

void tangent_factors(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                     FeatureMatrix docs, std::span<float> factors, std::span<float> scores,
                     std::span<float> magnitudes) {
  const std::int64_t stride = shape.factors();
  assert(docs.features == shape.inputs);
  assert(std::ssize(theta) == shape.parameters());
  assert(std::ssize(factors) == docs.docs * stride);
  assert(scores.empty() || std::ssize(scores) == docs.docs);
  assert(magnitudes.empty() || magnitudes.size() == scores.size());
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    float* row = factors.data() + begin * stride;
    const float* features = docs.values + begin * docs.features;
    // Row strides are those of score_docs(): the bits of a product may depend on its operands' strides.
    const UnitRows hidden = take_hidden(scratch, shape, end - begin);
    const UnitRows kept = hidden_of_factors(shape, row);
    forward_hidden(shape, theta.data(), features, end - begin, hidden);
    for (std::int64_t doc = 0; doc < end - begin; ++doc) {
      std::copy_n(features + doc * docs.features, docs.features, row + doc * stride);
      for (std::int64_t l = 0; l + 1 < shape.depth; ++l)
        std::copy_n(hidden.layer(l) + doc * hidden.stride, shape.width, kept.layer(l) + doc * stride);
    }
    if (!scores.empty()) {
      forward_output(shape, theta.data(), features, hidden, end - begin, scores.data() + begin,
                     magnitudes.empty() ? nullptr : magnitudes.data() + begin);
    }
    const float one = 1.0F;
    backward_deltas(shape, theta.data(), &one, 0, end - begin, hidden, deltas_of_factors(shape, row));
  });
}

void expand_docs(const TangentShape& shape, TangentFactors docs, double scale, std::int64_t begin,
                 std::int64_t end, double* rows, std::int64_t stride) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const float* factors = docs.row(shape, doc);
    double* out = rows + doc * stride;
    for_parameters(
        shape, begin, end,
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t from, std::int64_t to,
            std::int64_t place) {
          const double delta = scale * double{factors[layer.delta + row]};
          const float* input = factors + layer.input;
          for (std::int64_t c = from; c < to; ++c) out[place + c - from] = delta * double{input[c]};
        },
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t place) {
          out[place] = scale * double{factors[layer.delta + row]};
        });
  }
}

void expand_pairs(const TangentShape& shape, TangentFactors pairs, double scale, std::int64_t begin,
                  std::int64_t end, double* rows, std::int64_t stride) {
  assert(pairs.docs % 2 == 0);
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    const float* winner = pairs.row(shape, 2 * pair);
    const float* loser = pairs.row(shape, 2 * pair + 1);
    double* out = rows + pair * stride;
    for_parameters(
        shape, begin, end,
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t from, std::int64_t to,
            std::int64_t place) {
          // Products of two float32 numbers are exact in double: one rounding in the difference, one more
          // in the scale.
          const double winner_delta{winner[layer.delta + row]};
          const double loser_delta{loser[layer.delta + row]};
          const float* winner_input = winner + layer.input;
          const float* loser_input = loser + layer.input;
          for (std::int64_t c = from; c < to; ++c) {
            out[place + c - from] =
                scale * (winner_delta * double{winner_input[c]} - loser_delta * double{loser_input[c]});
          }
        },
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t place) {
          out[place] = scale * (double{winner[layer.delta + row]} - double{loser[layer.delta + row]});
        });
  }
}

}  // namespace olrank
