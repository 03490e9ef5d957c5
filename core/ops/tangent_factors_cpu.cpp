#include <algorithm>
#include <cassert>

#include "core/ops/blas.h"
#include "core/ops/relu_layers.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kDocsPerBlock = 128;
constexpr std::int64_t kUnitsPerBlock = 50;  // half of the usual width: two threads share it

/// Calls part(layer, row, first column, end column, place) for each run of parameters of one row of weights
/// in [begin, end), and bias(layer, row, place) for each bias; `place` counts from `begin`.
template <class Part, class Bias>
void for_parameters(const NetworkShape& shape, std::int64_t begin, std::int64_t end, const Part& part,
                    const Bias& bias) {
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
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

OLRANK_VECTOR_CLONES
void widen(std::int64_t count, const float* from, double* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = double{from[i]};
}

/// to = weight · from.
OLRANK_VECTOR_CLONES
void widen_scaled(std::int64_t count, double weight, const float* from, double* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = weight * double{from[i]};
}

/// Σ delta · output, in eight lanes that are added in order.
OLRANK_VECTOR_CLONES
double weighted_sum(std::int64_t count, const float* delta, const double* output) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += double{delta[i + lane]} * output[i + lane];
  }
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += double{delta[i]} * output[i];
  return sum;
}

}  // namespace

void tangent_factors(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                     FeatureMatrix docs, std::span<float> factors, std::span<float> scores,
                     std::span<float> magnitudes) {
  const std::int64_t stride = shape.factors();
  assert(docs.features == shape.inputs);
  assert(static_cast<std::int64_t>(theta.size()) == shape.parameters());
  assert(static_cast<std::int64_t>(factors.size()) == docs.docs * stride);
  assert(scores.empty() || static_cast<std::int64_t>(scores.size()) == docs.docs);
  assert(magnitudes.empty() || magnitudes.size() == scores.size());
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    float* row = factors.data() + begin * stride;
    const float* features = docs.values + begin * docs.features;
    // Units in rows as score_docs() has them: the bits of a product may hang on the strides of its
    // operands.
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

void expand_docs(const NetworkShape& shape, TangentFactors docs, double scale, std::int64_t begin,
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

void expand_pairs(const NetworkShape& shape, TangentFactors pairs, double scale, std::int64_t begin,
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

void gradient_products(ExecutionContext& context, const NetworkShape& shape, TangentFactors docs,
                       std::span<const double> v, std::span<double> products) {
  assert(static_cast<std::int64_t>(v.size()) == shape.parameters());
  assert(static_cast<std::int64_t>(products.size()) == docs.docs);
  const std::int64_t widest = std::max(shape.inputs, shape.width);
  context.for_blocks(docs.docs, kDocsPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto inputs = scratch.take<double>(static_cast<std::size_t>(kDocsPerBlock * widest));
    const auto outputs = scratch.take<double>(static_cast<std::size_t>(kDocsPerBlock * shape.width));
    std::fill(products.begin() + begin, products.begin() + end, 0.0);
    for (std::int64_t l = 0; l < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      for (std::int64_t doc = begin; doc < end; ++doc) {
        widen(layer.columns, docs.row(shape, doc) + layer.input,
              inputs.data() + (doc - begin) * layer.columns);
      }
      // h_{l−1}ᵀ V_lᵀ: one number a unit, to be weighted with δ.
      blas::gemm(Transpose::kNo, Transpose::kYes, end - begin, layer.rows, layer.columns, 1.0,
                 inputs.data(), layer.columns, v.data() + layer.weight, layer.columns, 0.0, outputs.data(),
                 layer.rows);
      for (std::int64_t doc = begin; doc < end; ++doc) {
        const float* delta = docs.row(shape, doc) + layer.delta;
        double& product = products[static_cast<std::size_t>(doc)];
        product += weighted_sum(layer.rows, delta, outputs.data() + (doc - begin) * layer.rows);
        if (layer.has_bias()) product += weighted_sum(layer.rows, delta, v.data() + layer.bias);
      }
    }
  });
}

void gradient_sum(ExecutionContext& context, const NetworkShape& shape, TangentFactors docs,
                  std::span<const double> weights, std::span<double> sum) {
  assert(static_cast<std::int64_t>(sum.size()) == shape.parameters());
  assert(static_cast<std::int64_t>(weights.size()) == docs.docs);
  // A task owns some units of one layer and walks over the documents in order, so no sums are combined.
  const std::int64_t unit_blocks = (shape.width + kUnitsPerBlock - 1) / kUnitsPerBlock;
  const std::int64_t tasks = (shape.depth - 1) * unit_blocks + 1;
  const std::int64_t widest = std::max(shape.inputs, shape.width);
  context.for_blocks(tasks, 1, [&](std::int64_t task, std::int64_t, int worker) {
    const NetworkLayer layer = shape.layer(task / unit_blocks);
    const std::int64_t first = task % unit_blocks * kUnitsPerBlock;
    const std::int64_t units = std::min(layer.rows - first, kUnitsPerBlock);
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto deltas = scratch.take<double>(static_cast<std::size_t>(kDocsPerBlock * kUnitsPerBlock));
    const auto inputs = scratch.take<double>(static_cast<std::size_t>(kDocsPerBlock * widest));
    double* out = sum.data() + layer.weight + first * layer.columns;
    double* bias = layer.has_bias() ? sum.data() + layer.bias + first : nullptr;
    std::fill_n(out, units * layer.columns, 0.0);
    if (bias != nullptr) std::fill_n(bias, units, 0.0);
    for (std::int64_t begin = 0; begin < docs.docs; begin += kDocsPerBlock) {
      const std::int64_t count = std::min(kDocsPerBlock, docs.docs - begin);
      for (std::int64_t i = 0; i < count; ++i) {
        const float* factors = docs.row(shape, begin + i);
        const double weight = weights[static_cast<std::size_t>(begin + i)];
        double* delta = deltas.data() + i * units;
        widen_scaled(units, weight, factors + layer.delta + first, delta);
        for (std::int64_t r = 0; bias != nullptr && r < units; ++r) bias[r] += delta[r];
        widen(layer.columns, factors + layer.input, inputs.data() + i * layer.columns);
      }
      blas::gemm(Transpose::kYes, Transpose::kNo, units, layer.columns, count, 1.0, deltas.data(), units,
                 inputs.data(), layer.columns, 1.0, out, layer.columns);
    }
  });
}

void pair_gradient_products(ExecutionContext& context, const NetworkShape& shape, TangentFactors pairs,
                            std::span<const double> v, std::span<double> products) {
  assert(static_cast<std::int64_t>(products.size()) == pairs.docs / 2);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto of_docs = scratch.take<double>(static_cast<std::size_t>(pairs.docs));
  gradient_products(context, shape, pairs, v, of_docs);
  for (std::size_t s = 0; s < products.size(); ++s) products[s] = of_docs[2 * s] - of_docs[2 * s + 1];
}

void pair_gradient_sum(ExecutionContext& context, const NetworkShape& shape, TangentFactors pairs,
                       std::span<const double> weights, std::span<double> sum) {
  assert(static_cast<std::int64_t>(weights.size()) == pairs.docs / 2);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto of_docs = scratch.take<double>(static_cast<std::size_t>(pairs.docs));
  for (std::size_t s = 0; s < weights.size(); ++s) {
    of_docs[2 * s] = weights[s];
    of_docs[2 * s + 1] = -weights[s];
  }
  gradient_sum(context, shape, pairs, of_docs, sum);
}

}  // namespace olrank
