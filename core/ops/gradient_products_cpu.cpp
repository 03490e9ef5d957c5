#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "core/math/host_device.h"
#include "core/math/pair_loss.h"
#include "core/ops/blas.h"
#include "core/ops/gradient_products.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kDocsPerBlock = 128;
constexpr std::int64_t kUnitsPerBlock = 50;  // half of the usual width, so that two threads share a layer

OLRANK_VECTOR_CLONES
void widen(std::int64_t count, const float* from, double* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = double{from[i]};
}

/// to = weight · from.
OLRANK_VECTOR_CLONES
void widen_scaled(std::int64_t count, double weight, const float* from, double* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = weight * double{from[i]};
}

/// Σ delta · output, in eight lanes that are summed in order.
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

/// Up to kUnitsPerBlock units of a layer.
struct UnitRange {
  NetworkLayer layer;
  std::int64_t first = 0;
};

std::vector<UnitRange> unit_ranges(const TangentShape& shape) {
  std::vector<UnitRange> ranges;
  for (const NetworkLayer& layer : shape.layers()) {
    for (std::int64_t first = 0; first < layer.rows; first += kUnitsPerBlock)
      ranges.push_back({layer, first});
  }
  return ranges;
}

constexpr std::int64_t kRowsPerChunk = 32;    // z and residuals fit on the stack
constexpr std::int64_t kRowsPerBlock = 2048;  // the unit of parallel work

// Eight numbers side by side; compilers split them over the registers of the target.
constexpr std::int64_t kLanes = FoldedPairs::kPadding;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

OLRANK_ALWAYS_INLINE void load(const double* from, Doubles& lanes) {
  std::memcpy(&lanes, from, sizeof lanes);
}

/// row·θ in 2 · kLanes running sums, combined in a fixed order.
OLRANK_ALWAYS_INLINE double dot(const double* row, const double* theta, std::int64_t stride) {
  Doubles even = {};
  Doubles odd = {};
  Doubles x;
  Doubles t;
  for (std::int64_t k = 0; k < stride; k += 2 * kLanes) {
    load(row + k, x);
    load(theta + k, t);
    even += x * t;
    if (k + kLanes == stride) break;
    load(row + k + kLanes, x);
    load(theta + k + kLanes, t);
    odd += x * t;
  }
  even += odd;
  return ((even[0] + even[4]) + (even[2] + even[6])) + ((even[1] + even[5]) + (even[3] + even[7]));
}

/// gradient += residual · row.
OLRANK_ALWAYS_INLINE void add_scaled(double residual, const double* row, double* gradient,
                                     std::int64_t stride) {
  Doubles x;
  Doubles g;
  for (std::int64_t k = 0; k < stride; k += kLanes) {
    load(row + k, x);
    load(gradient + k, g);
    g += residual * x;
    std::memcpy(gradient + k, &g, sizeof g);
  }
}

/// Rows [begin, end): adds to `gradient`, writes `curvature` unless it is null.
OLRANK_VECTOR_CLONES
void gradient_of_block(const FoldedPairs& pairs, std::int64_t begin, std::int64_t end, const double* theta,
                       double* gradient, double* curvature) {
  double z[kRowsPerChunk];
  double residual[kRowsPerChunk];
  for (std::int64_t chunk = begin; chunk < end; chunk += kRowsPerChunk) {
    const std::int64_t rows = std::min(kRowsPerChunk, end - chunk);
    for (std::int64_t i = 0; i < rows; ++i) {
      z[i] = dot(pairs.rows + (chunk + i) * pairs.stride, theta, pairs.stride);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const double p = sigmoid(z[i]);
      residual[i] = pair_term_slope(p, pairs.count[chunk + i], pairs.first_wins[chunk + i]);
      z[i] = p;
    }
    if (curvature != nullptr) {
      for (std::int64_t i = 0; i < rows; ++i) {
        curvature[chunk + i] = pair_term_curvature(z[i], pairs.count[chunk + i]);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      add_scaled(residual[i], pairs.rows + (chunk + i) * pairs.stride, gradient, pairs.stride);
    }
  }
}

constexpr std::int64_t kParametersPerBlock = 4096;

/// sum [columns] += Σ_i weight_i · row_i in float32, documents in order.
OLRANK_VECTOR_CLONES
void add_weighted_rows(const float* weights, std::int64_t weight_stride, const float* rows,
                       std::int64_t row_stride, std::int64_t docs, std::int64_t columns, float* sum) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float weight = weights[doc * weight_stride];
    const float* row = rows + doc * row_stride;
    for (std::int64_t c = 0; c < columns; ++c) sum[c] += weight * row[c];
  }
}

/// part [p] = Σ_i δ_i ⊗ h_i over the documents of one block, in float32.
void sum_outer_products(const NetworkShape& shape, FeatureMatrix docs, UnitRows hidden, UnitRows deltas,
                        float* part) {
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const float* inputs = l == 0 ? docs.values : hidden.layer(l - 1);
    const std::int64_t stride = l == 0 ? docs.features : hidden.stride;
    const float* delta = deltas.layer(l);
    float* out = part + layer.weight;
    if (layer.rows == 1) {
      std::fill_n(out, layer.columns, 0.0F);
      add_weighted_rows(delta, deltas.stride, inputs, stride, docs.docs, layer.columns, out);
    } else {
      blas::gemm(Transpose::kYes, Transpose::kNo, layer.rows, layer.columns, docs.docs, 1.0F, delta,
                 deltas.stride, inputs, stride, 0.0F, out, layer.columns);
    }
    if (!layer.has_bias()) continue;
    float* bias = part + layer.bias;
    std::fill_n(bias, layer.rows, 0.0F);
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      for (std::int64_t r = 0; r < layer.rows; ++r) bias[r] += delta[doc * deltas.stride + r];
    }
  }
}

/// gradient [size] = scale · Σ of the rows of `parts` from top to bottom, `stride` apart.
OLRANK_VECTOR_CLONES
void add_parts(const float* parts, std::int64_t count, std::int64_t stride, std::int64_t size, double scale,
               double* gradient) {
  for (std::int64_t k = 0; k < size; ++k) gradient[k] = 0.0;
  for (std::int64_t part = 0; part < count; ++part) {
    const float* row = parts + part * stride;
    for (std::int64_t k = 0; k < size; ++k) gradient[k] += scale * double{row[k]};
  }
}

}  // namespace

void gradient_products(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                       std::span<const double> v, std::span<double> products) {
  assert(std::ssize(v) == shape.parameters());
  assert(std::ssize(products) == docs.docs);
  context.for_blocks(docs.docs, kDocsPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto inputs = scratch.take<double>(kDocsPerBlock * shape.most_columns());
    const auto outputs = scratch.take<double>(kDocsPerBlock * shape.most_rows());
    std::fill(products.begin() + begin, products.begin() + end, 0.0);
    for (const NetworkLayer& layer : shape.layers()) {
      for (std::int64_t doc = begin; doc < end; ++doc) {
        widen(layer.columns, docs.row(shape, doc) + layer.input,
              inputs.data() + (doc - begin) * layer.columns);
      }
      // h_{l−1}ᵀ V_lᵀ: one number per unit, to be weighted by δ.
      blas::gemm(Transpose::kNo, Transpose::kYes, end - begin, layer.rows, layer.columns, 1.0,
                 inputs.data(), layer.columns, v.data() + layer.weight, layer.columns, 0.0, outputs.data(),
                 layer.rows);
      for (std::int64_t doc = begin; doc < end; ++doc) {
        const float* delta = docs.row(shape, doc) + layer.delta;
        double& product = products[doc];
        product += weighted_sum(layer.rows, delta, outputs.data() + (doc - begin) * layer.rows);
        if (layer.has_bias()) product += weighted_sum(layer.rows, delta, v.data() + layer.bias);
      }
    }
  });
}

void gradient_sum(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                  std::span<const double> weights, std::span<double> sum) {
  assert(std::ssize(sum) == shape.parameters());
  assert(std::ssize(weights) == docs.docs);
  // A task owns some units of one layer and adds the documents in order, so no partial sums are combined.
  const std::vector<UnitRange> ranges = unit_ranges(shape);
  context.for_blocks(std::ssize(ranges), 1, [&](std::int64_t task, std::int64_t, int worker) {
    const auto& [layer, first] = ranges[task];
    const std::int64_t units = std::min(layer.rows - first, kUnitsPerBlock);
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto deltas = scratch.take<double>(kDocsPerBlock * kUnitsPerBlock);
    const auto inputs = scratch.take<double>(kDocsPerBlock * shape.most_columns());
    double* out = sum.data() + layer.weight + first * layer.columns;
    double* bias = layer.has_bias() ? sum.data() + layer.bias + first : nullptr;
    std::fill_n(out, units * layer.columns, 0.0);
    if (bias != nullptr) std::fill_n(bias, units, 0.0);
    for (std::int64_t begin = 0; begin < docs.docs; begin += kDocsPerBlock) {
      const std::int64_t count = std::min(kDocsPerBlock, docs.docs - begin);
      for (std::int64_t i = 0; i < count; ++i) {
        const float* factors = docs.row(shape, begin + i);
        const double weight = weights[begin + i];
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

void pair_gradient_products(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                            std::span<const double> v, std::span<double> products) {
  assert(std::ssize(products) == pairs.docs / 2);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto of_docs = scratch.take<double>(pairs.docs);
  gradient_products(context, shape, pairs, v, of_docs);
  for (std::size_t s = 0; s < products.size(); ++s) products[s] = of_docs[2 * s] - of_docs[2 * s + 1];
}

void pair_gradient_sum(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                       std::span<const double> weights, std::span<double> sum) {
  assert(std::ssize(weights) == pairs.docs / 2);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto of_docs = scratch.take<double>(pairs.docs);
  for (std::size_t s = 0; s < weights.size(); ++s) {
    of_docs[2 * s] = weights[s];
    of_docs[2 * s + 1] = -weights[s];
  }
  gradient_sum(context, shape, pairs, of_docs, sum);
}

void folded_pair_gradient(ExecutionContext& context, const FoldedPairs& pairs,
                          std::span<const double> theta, std::span<double> gradient,
                          std::span<double> curvature) {
  assert(std::ssize(theta) == pairs.stride && gradient.size() == theta.size());
  assert(curvature.empty() || std::ssize(curvature) == pairs.pairs);
  double* curvature_of = curvature.empty() ? nullptr : curvature.data();
  std::fill(gradient.begin(), gradient.end(), 0.0);
  const std::int64_t blocks = (pairs.pairs + kRowsPerBlock - 1) / kRowsPerBlock;
  if (blocks <= 1) {
    gradient_of_block(pairs, 0, pairs.pairs, theta.data(), gradient.data(), curvature_of);
    return;
  }
  const Scratch::Frame frame(context.scratch());
  const auto partial = context.scratch().take<double>(blocks * pairs.stride);
  std::fill(partial.begin(), partial.end(), 0.0);
  context.for_blocks(pairs.pairs, kRowsPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    double* sums = partial.data() + begin / kRowsPerBlock * pairs.stride;
    gradient_of_block(pairs, begin, end, theta.data(), sums, curvature_of);
  });
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t k = 0; k < pairs.stride; ++k) {
      gradient[k] += partial[block * pairs.stride + k];
    }
  }
}

double folded_pair_loss(const FoldedPairs& pairs, std::span<const double> theta) {
  double loss = 0.0;
  for (std::int64_t s = 0; s < pairs.pairs; ++s) {
    const double z = dot(pairs.rows + s * pairs.stride, theta.data(), pairs.stride);
    loss += pair_term_loss(z, pairs.count[s], pairs.first_wins[s]);
  }
  return loss;
}

void score_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                    FeatureMatrix docs, ScoreSlopes find_slopes, double scale, std::span<double> gradient) {
  assert(docs.features == shape.inputs || docs.docs == 0);
  assert(std::ssize(theta) == shape.parameters() && gradient.size() == theta.size());
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto count = static_cast<std::size_t>(docs.docs);
  const std::int64_t p = shape.parameters();
  const std::int64_t blocks = (docs.docs + kMostDocsPerFloatSum - 1) / kMostDocsPerFloatSum;
  const UnitRows hidden = take_hidden(shared, shape, docs.docs);
  const auto parts = shared.take<float>(blocks * p);
  const auto scores = shared.take<float>(count);
  const auto slopes = shared.take<double>(count);
  // Forward block by block, then backward block by block, so that a block's features and deltas stay in the
  // cache.
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int) {
    const float* features = docs.values + begin * docs.features;
    forward_hidden(shape, theta.data(), features, end - begin, hidden.from(begin));
    forward_output(shape, theta.data(), features, hidden.from(begin), end - begin, scores.data() + begin,
                   nullptr);
  });
  find_slopes(scores, slopes);
  context.for_blocks(
      docs.docs, kMostDocsPerFloatSum, [&](std::int64_t begin, std::int64_t end, int worker) {
        Scratch& scratch = context.scratch(worker);
        const Scratch::Frame frame(scratch);
        const UnitRows deltas = take_deltas(scratch, shape, end - begin);
        float outputs[kMostDocsPerFloatSum];
        std::transform(slopes.begin() + begin, slopes.begin() + end, outputs,
                       [](double slope) { return static_cast<float>(slope); });
        backward_deltas(shape, theta.data(), outputs, 1, end - begin, hidden.from(begin), deltas);
        sum_outer_products(shape, {docs.values + begin * docs.features, end - begin, docs.features},
                           hidden.from(begin), deltas, parts.data() + begin / kMostDocsPerFloatSum * p);
      });
  context.for_blocks(p, kParametersPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    add_parts(parts.data() + begin, blocks, p, end - begin, scale, gradient.data() + begin);
  });
}

}  // namespace olrank
