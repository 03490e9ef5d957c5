#include "core/ops/pair_training.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/pair_loss.h"
#include "core/ops/blas.h"
#include "core/ops/relu_layers.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kUnitsPerBlock = 32;
constexpr std::int64_t kDocsPerSum = 512;  // float32 sums are no longer than this
constexpr std::int64_t kTermsPerBlock = 1024;

/// Σ of the terms, and, where `slopes` is not null, each term's derivative with respect to z.
double term_losses(ExecutionContext& context, std::span<const PairTerm> terms, const float* scores,
                   double* slopes) {
  const auto count = static_cast<std::int64_t>(terms.size());
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto sums =
      scratch.take<double>(static_cast<std::size_t>((count + kTermsPerBlock - 1) / kTermsPerBlock));
  context.for_blocks(count, kTermsPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    double sum = 0.0;
    for (std::int64_t t = begin; t < end; ++t) {
      const PairTerm& term = terms[static_cast<std::size_t>(t)];
      const double z = double{scores[term.first]} - double{scores[term.second]};
      sum += term.labels * logistic_loss(z) + (term.weight - term.labels) * logistic_loss(-z);
      if (slopes != nullptr) slopes[t] = term.weight * sigmoid(z) - term.labels;
    }
    sums[static_cast<std::size_t>(begin / kTermsPerBlock)] = sum;
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

/// The prior's part of the loss; adds its gradient where there is one to add to.
double prior_loss(std::span<const float> theta, const PairObjective& objective,
                  std::span<double> gradient) {
  assert(objective.centre.empty() || objective.centre.size() == theta.size());
  if (objective.prior_weight == 0.0) return 0.0;
  double sum = 0.0;
  for (std::size_t k = 0; k < theta.size(); ++k) {
    const double distance =
        double{theta[k]} - (objective.centre.empty() ? 0.0 : double{objective.centre[k]});
    sum += distance * distance;
    if (!gradient.empty()) gradient[k] += 2.0 * objective.prior_weight * distance;
  }
  return objective.prior_weight * sum;
}

/// gradient [p] = scale · Σ_i δ_i ⊗ h_i over all documents: a task owns some units of one layer and walks
/// over the documents in order.
void sum_outer_products(ExecutionContext& context, const NetworkShape& shape, const float* rows,
                        FeatureMatrix docs, double scale, std::span<double> gradient) {
  const std::int64_t stride = shape.factors();
  const std::int64_t unit_blocks = (shape.width + kUnitsPerBlock - 1) / kUnitsPerBlock;
  const std::int64_t tasks = (shape.depth - 1) * unit_blocks + 1;
  const std::int64_t widest = std::max(shape.inputs, shape.width);
  context.for_blocks(tasks, 1, [&](std::int64_t task, std::int64_t, int worker) {
    const NetworkLayer layer = shape.layer(task / unit_blocks);
    const std::int64_t first = task % unit_blocks * kUnitsPerBlock;
    const std::int64_t units = std::min(layer.rows - first, kUnitsPerBlock);
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto part = scratch.take<float>(static_cast<std::size_t>(kUnitsPerBlock * widest));
    double* out = gradient.data() + layer.weight + first * layer.columns;
    double* bias = layer.has_bias() ? gradient.data() + layer.bias + first : nullptr;
    std::fill_n(out, units * layer.columns, 0.0);
    if (bias != nullptr) std::fill_n(bias, units, 0.0);
    for (std::int64_t begin = 0; begin < docs.docs; begin += kDocsPerSum) {
      const std::int64_t count = std::min(kDocsPerSum, docs.docs - begin);
      const float* block = rows + begin * stride;
      const bool of_features = layer.input == 0;  // h_0, which stays where it is
      const float* inputs = of_features ? docs.values + begin * docs.features : block + layer.input;
      blas::gemm(Transpose::kYes, Transpose::kNo, units, layer.columns, count, 1.0F,
                 block + layer.delta + first, stride, inputs, of_features ? docs.features : stride, 0.0F,
                 part.data(), layer.columns);
      for (std::int64_t k = 0; k < units * layer.columns; ++k) {
        out[k] += scale * double{part[static_cast<std::size_t>(k)]};
      }
      if (bias == nullptr) continue;
      for (std::int64_t doc = 0; doc < count; ++doc) {
        const float* delta = block + doc * stride + layer.delta + first;
        for (std::int64_t r = 0; r < units; ++r) bias[r] += scale * double{delta[r]};
      }
    }
  });
}

}  // namespace

double pair_loss_gradient(ExecutionContext& context, const NetworkShape& shape,
                          std::span<const float> theta, FeatureMatrix docs, std::span<const PairTerm> terms,
                          const PairObjective& objective, std::span<double> gradient) {
  assert(docs.features == shape.inputs || docs.docs == 0);
  assert(static_cast<std::int64_t>(theta.size()) == shape.parameters() && gradient.size() == theta.size());
  const std::int64_t stride = shape.factors();
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto count = static_cast<std::size_t>(docs.docs);
  const auto rows = shared.take<float>(static_cast<std::size_t>(docs.docs * stride));
  const auto scores = shared.take<float>(count);
  const auto slopes = shared.take<double>(terms.size());
  const auto doc_slopes = shared.take<double>(count);
  const auto outputs = shared.take<float>(count);
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int) {
    float* block = rows.data() + begin * stride;
    const float* features = docs.values + begin * docs.features;
    forward_hidden(shape, theta.data(), features, end - begin, block, stride);
    forward_output(shape, theta.data(), features, block, end - begin, stride, scores.data() + begin,
                   nullptr);
  });
  const double data = term_losses(context, terms, scores.data(), slopes.data());
  std::fill(doc_slopes.begin(), doc_slopes.end(), 0.0);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    doc_slopes[static_cast<std::size_t>(terms[t].first)] += slopes[t];
    doc_slopes[static_cast<std::size_t>(terms[t].second)] -= slopes[t];
  }
  for (std::size_t doc = 0; doc < count; ++doc) outputs[doc] = static_cast<float>(doc_slopes[doc]);
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int) {
    backward_deltas(shape, theta.data(), outputs.data() + begin, 1, end - begin,
                    rows.data() + begin * stride, stride);
  });
  sum_outer_products(context, shape, rows.data(), docs, objective.data_scale, gradient);
  return objective.data_scale * data + prior_loss(theta, objective, gradient);
}

double pair_loss(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                 FeatureMatrix docs, std::span<const PairTerm> terms, const PairObjective& objective) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<float>(static_cast<std::size_t>(docs.docs));
  score_docs(context, shape, theta, docs, scores);
  return objective.data_scale * term_losses(context, terms, scores.data(), nullptr) +
         prior_loss(theta, objective, {});
}

double largest_curvature(ExecutionContext& context, const NetworkShape& shape, TangentFactors docs,
                         std::span<const PairTerm> terms, std::span<double> vector, double tolerance,
                         int most) {
  assert(static_cast<std::int64_t>(vector.size()) == shape.parameters());
  if (terms.empty()) return 0.0;
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto products = scratch.take<double>(static_cast<std::size_t>(docs.docs));
  const auto weights = scratch.take<double>(static_cast<std::size_t>(docs.docs));
  const auto length = [&] {
    double sum = 0.0;
    for (const double value : vector) sum += value * value;
    return std::sqrt(sum);
  };
  double norm = length();
  if (!(norm > 0.0)) {
    RngStream draws(make_key({.purpose = Purpose::kProbe}), 0);
    draws.unit_vector(vector);
    norm = 1.0;
  }
  double estimate = 0.0;
  for (int iteration = 0; iteration < most; ++iteration) {
    for (double& value : vector) value /= norm;
    gradient_products(context, shape, docs, vector, products);
    std::fill(weights.begin(), weights.end(), 0.0);
    // vᵀ(Σ w g gᵀ)v: the Rayleigh quotient, which never falls from one iteration to the next.
    double quotient = 0.0;
    for (const PairTerm& term : terms) {
      const auto first = static_cast<std::size_t>(term.first);
      const auto second = static_cast<std::size_t>(term.second);
      const double product = products[first] - products[second];
      weights[first] += term.weight * product;
      weights[second] -= term.weight * product;
      quotient += term.weight * product * product;
    }
    const bool settled = iteration > 0 && quotient <= estimate * (1.0 + tolerance);
    estimate = std::max(estimate, quotient);
    if (settled) break;
    gradient_sum(context, shape, docs, weights, vector);
    norm = length();
    // All gradients are equal, or the start is orthogonal to them all, which has probability 0.
    if (!(norm > 0.0)) break;
  }
  return estimate / 4.0;
}

}  // namespace olrank
