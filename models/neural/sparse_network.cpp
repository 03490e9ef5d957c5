#include "models/neural/sparse_network.h"

#include <algorithm>
#include <cassert>

#include "core/ops/blas.h"
#include "core/ops/cancelling_halves.h"
#include "core/ops/gradient_products.h"

namespace olrank {
namespace {

constexpr std::int64_t kUnitsPerTask = 4;  // whose rows of weights stay in the cache over all documents

/// The layers above the first: a network of its units.
NetworkShape upper_shape(const NetworkShape& shape) {
  assert(shape.depth >= 2);
  return {shape.width, shape.width, shape.depth - 1, shape.biases, shape.output_scale};
}

/// units [docs × m] = φ(W_1 x + b_1).
void find_units(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                FeatureMatrix docs, std::span<float> units) {
  const NetworkLayer first = shape.layer(0);
  context.for_blocks(first.rows, kUnitsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const float* weights = theta.data() + first.weight + unit * first.columns;
      const double bias = first.has_bias() ? theta[first.bias + unit] : 0.0;
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        const SparseRow row = docs.sparse_doc(doc);
        double sum = bias;
        for (std::size_t i = 0; i < row.columns.size(); ++i)
          sum += double{weights[row.columns[i]]} * double{row.values[i]};
        units[doc * first.rows + unit] = static_cast<float>(std::max(sum, 0.0));
      }
    }
  });
}

/// Adds the first layer's part of the gradient; `deltas` [docs × m] are ∂f/∂h_1.
void add_first_layer(ExecutionContext& context, const NetworkShape& shape, FeatureMatrix docs,
                     std::span<const float> units, std::span<const float> deltas,
                     std::span<const double> weights, std::span<double> gradient) {
  const NetworkLayer first = shape.layer(0);
  context.for_blocks(first.rows, kUnitsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      double* const sums = gradient.data() + first.weight + unit * first.columns;
      double of_bias = 0.0;
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        const std::int64_t place = doc * first.rows + unit;
        const double slope = units[place] > 0.0F ? weights[doc] * double{deltas[place]} : 0.0;
        if (slope == 0.0) continue;
        of_bias += slope;
        const SparseRow row = docs.sparse_doc(doc);
        for (std::size_t i = 0; i < row.columns.size(); ++i)
          sums[row.columns[i]] += slope * double{row.values[i]};
      }
      if (first.has_bias()) gradient[first.bias + unit] += of_bias;
    }
  });
}

}  // namespace

void score_sparse_docs(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                       FeatureMatrix docs, std::span<float> scores) {
  if (halves_cancel(shape, theta.data())) {
    std::fill(scores.begin(), scores.end(), 0.0F);
    return;
  }
  constexpr std::int64_t kDocsAtOnce = 4096;
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto units = scratch.take<float>(std::min(docs.docs, kDocsAtOnce) * shape.width);
  for (std::int64_t first = 0; first < docs.docs; first += kDocsAtOnce) {
    const std::int64_t count = std::min(kDocsAtOnce, docs.docs - first);
    find_units(context, shape, theta, docs.part(first, first + count), units);
    score_docs(context, upper_shape(shape), theta.subspan(shape.layer(1).weight),
               {units.data(), count, shape.width}, scores.subspan(first, count));
  }
}

void add_sparse_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                         FeatureMatrix docs,
                         FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
                         std::span<double> gradient) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const NetworkShape upper = upper_shape(shape);
  const auto above = static_cast<std::size_t>(shape.layer(1).weight);
  const auto upper_theta = theta.subspan(above);
  const auto units = scratch.take<float>(docs.docs * shape.width);
  const auto factors = scratch.take<float>(docs.docs * upper.factors());
  const auto deltas = scratch.take<float>(docs.docs * shape.width);
  const auto scores = scratch.take<float>(docs.docs);
  const auto weights = scratch.take<double>(docs.docs);
  const auto sum = scratch.take<double>(upper_theta.size());
  find_units(context, shape, theta, docs, units);
  tangent_factors(context, upper, upper_theta, {units.data(), docs.docs, shape.width}, factors, scores);
  if (halves_cancel(shape, theta.data())) std::fill(scores.begin(), scores.end(), 0.0F);
  weigh(scores, weights);
  gradient_sum(context, upper, {factors.data(), docs.docs}, weights, sum);
  for (std::size_t k = 0; k < sum.size(); ++k) gradient[above + k] += sum[k];
  const NetworkLayer second = upper.layer(0);
  blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, docs.docs, second.columns, second.rows, 1.0F,
             factors.data() + second.delta, upper.factors(), upper_theta.data() + second.weight,
             second.columns, 0.0F, deltas.data(), second.columns);
  add_first_layer(context, shape, docs, units, deltas, weights, gradient);
}

}  // namespace olrank
