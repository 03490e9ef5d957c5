#include <algorithm>
#include <cassert>
#include <utility>

#include "core/math/host_device.h"
#include "core/ops/blas.h"
#include "core/ops/precise_scores.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kDoublesPerLine = 8;

OLRANK_VECTOR_CLONES
void widen(const float* values, std::int64_t count, double* wide) {
  for (std::int64_t i = 0; i < count; ++i) wide[i] = double{values[i]};
}

OLRANK_VECTOR_CLONES
void add_and_rectify(double* units, std::int64_t stride, std::int64_t docs, const double* bias,
                     std::int64_t size) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    double* unit = units + doc * stride;
    for (std::int64_t r = 0; r < size; ++r) {
      const double sum = bias == nullptr ? unit[r] : unit[r] + bias[r];
      unit[r] = sum > 0.0 ? sum : 0.0;
    }
  }
}

constexpr std::int64_t kLanes = 8;

double sum_of_lanes(double* sums) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

/// Eight running sums, combined in a fixed order.
OLRANK_VECTOR_CLONES
void weigh(const double* units, std::int64_t stride, std::int64_t docs, const double* weight,
           std::int64_t size, double* sums_of_docs) {
  const std::int64_t whole = size - size % kLanes;
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double* unit = units + doc * stride;
    double sums[kLanes] = {};
    for (std::int64_t k = 0; k < whole; k += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += weight[k + lane] * unit[k + lane];
    }
    for (std::int64_t k = whole; k < size; ++k) sums[k - whole] += weight[k] * unit[k];
    sums_of_docs[doc] = sum_of_lanes(sums);
  }
}

/// rows [docs × size] = the products of sparse documents with `size` rows of weights.
void multiply_sparse(FeatureMatrix docs, const double* weights, std::int64_t size, double* rows,
                     std::int64_t stride) {
  for (std::int64_t r = 0; r < size; ++r) {
    const double* row = weights + r * docs.features;
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      const SparseRow entries = docs.sparse_doc(doc);
      double sums[kLanes] = {};
      for (std::size_t i = 0; i < entries.columns.size(); ++i)
        sums[entries.columns[i] % kLanes] += row[entries.columns[i]] * entries.values[i];
      rows[doc * stride + r] = sum_of_lanes(sums);
    }
  }
}

}  // namespace

void precise_scores(Scratch& scratch, const NetworkShape& shape, std::span<const double> theta,
                    FeatureMatrix docs, std::span<double> scores) {
  assert(docs.features == shape.inputs && std::ssize(scores) == docs.docs);
  assert(std::ssize(theta) == shape.parameters());
  if (halves_cancel(shape, theta.data())) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return;
  }
  const Scratch::Frame frame(scratch);
  const std::int64_t stride = (shape.width + kDoublesPerLine - 1) / kDoublesPerLine * kDoublesPerLine;
  const std::int64_t most = std::min(docs.docs, kDocsPerPass);
  const auto inputs = scratch.take<double>(docs.is_sparse() ? 0 : most * shape.inputs);
  double* below = scratch.take<double>(most * stride).data();
  double* units = scratch.take<double>(most * stride).data();
  const NetworkLayer last = shape.layer(shape.depth - 1);
  for (std::int64_t begin = 0; begin < docs.docs; begin += kDocsPerPass) {
    const std::int64_t count = std::min(kDocsPerPass, docs.docs - begin);
    const FeatureMatrix part = docs.part(begin, begin + count);
    if (!docs.is_sparse()) widen(part.values, count * docs.features, inputs.data());
    const double* from = inputs.data();
    std::int64_t from_stride = shape.inputs;
    for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      if (l == 0 && docs.is_sparse()) {
        multiply_sparse(part, theta.data() + layer.weight, layer.rows, units, stride);
      } else {
        blas::gemm(Transpose::kNo, Transpose::kYes, count, layer.rows, layer.columns, 1.0, from,
                   from_stride, theta.data() + layer.weight, layer.columns, 0.0, units, stride);
      }
      add_and_rectify(units, stride, count, layer.has_bias() ? theta.data() + layer.bias : nullptr,
                      layer.rows);
      from = units;
      from_stride = stride;
      std::swap(units, below);
    }
    double* const out = scores.data() + begin;
    if (shape.depth == 1 && docs.is_sparse()) {
      multiply_sparse(part, theta.data() + last.weight, 1, out, 1);
    } else {
      weigh(from, from_stride, count, theta.data() + last.weight, last.columns, out);
    }
    const double bias = last.has_bias() ? theta[last.bias] : 0.0;
    for (std::int64_t doc = 0; doc < count; ++doc) out[doc] = shape.output_scale * (out[doc] + bias);
  }
}

}  // namespace olrank
