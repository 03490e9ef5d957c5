#include "core/ops/gradient_products.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "core/ops/blas.h"
#include "core/runtime/vector_clones.h"

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

}  // namespace olrank
