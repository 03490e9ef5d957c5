#include "core/ops/score_gradient.h"

#include <algorithm>
#include <cassert>

#include "core/ops/blas.h"
#include "core/ops/relu_layers.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

using blas::Transpose;

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
