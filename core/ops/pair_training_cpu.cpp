#include "core/ops/pair_training.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/pair_loss.h"
#include "core/ops/blas.h"
#include "core/ops/relu_layers.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kTermsPerBlock = 1024;
constexpr std::int64_t kParametersPerBlock = 4096;

/// Each term's derivative with respect to its z = f(first) − f(second), for at most kTermsPerBlock terms.
OLRANK_VECTOR_CLONES
void term_slopes(const PairTerm* terms, std::int64_t count, const float* scores, double* slopes) {
  double p[kTermsPerBlock];
  for (std::int64_t t = 0; t < count; ++t) {
    p[t] = double{scores[terms[t].first]} - double{scores[terms[t].second]};
  }
  for (std::int64_t t = 0; t < count; ++t) p[t] = sigmoid(p[t]);
  for (std::int64_t t = 0; t < count; ++t)
    slopes[t] = pair_term_slope(p[t], terms[t].weight, terms[t].labels);
}

double centre_at(const PairObjective& objective, std::size_t k) {
  return objective.centre.empty() ? 0.0 : double{objective.centre[k]};
}

double prior_loss(std::span<const float> theta, const PairObjective& objective) {
  assert(objective.centre.empty() || objective.centre.size() == theta.size());
  if (objective.prior_weight == 0.0) return 0.0;
  double sum = 0.0;
  for (std::size_t k = 0; k < theta.size(); ++k)
    sum += squared_distance(double{theta[k]}, centre_at(objective, k));
  return objective.prior_weight * sum;
}

double linear_loss(std::span<const float> theta, const PairObjective& objective) {
  assert(objective.linear.empty() || objective.linear.size() == theta.size());
  double sum = 0.0;
  for (std::size_t k = 0; k < objective.linear.size(); ++k) sum += objective.linear[k] * double{theta[k]};
  return sum;
}

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

/// The gradient at θ, and the terms' loss unless `loss` is null. Documents are processed forward block by
/// block, then backward block by block, so that each block's features and deltas stay in the cache.
void gradient_pass(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                   FeatureMatrix docs, std::span<const PairTerm> terms, double data_scale,
                   std::span<double> gradient, double* loss) {
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
  const auto doc_slopes = shared.take<double>(count);
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int) {
    const float* features = docs.values + begin * docs.features;
    forward_hidden(shape, theta.data(), features, end - begin, hidden.from(begin));
    forward_output(shape, theta.data(), features, hidden.from(begin), end - begin, scores.data() + begin,
                   nullptr);
  });
  if (loss != nullptr) *loss = pair_loss_of_scores(context, terms, scores);
  pair_slopes_of_scores(context, terms, scores, doc_slopes);
  context.for_blocks(
      docs.docs, kMostDocsPerFloatSum, [&](std::int64_t begin, std::int64_t end, int worker) {
        Scratch& scratch = context.scratch(worker);
        const Scratch::Frame frame(scratch);
        const UnitRows deltas = take_deltas(scratch, shape, end - begin);
        float outputs[kMostDocsPerFloatSum];
        std::transform(doc_slopes.begin() + begin, doc_slopes.begin() + end, outputs,
                       [](double slope) { return static_cast<float>(slope); });
        backward_deltas(shape, theta.data(), outputs, 1, end - begin, hidden.from(begin), deltas);
        sum_outer_products(shape, {docs.values + begin * docs.features, end - begin, docs.features},
                           hidden.from(begin), deltas, parts.data() + begin / kMostDocsPerFloatSum * p);
      });
  context.for_blocks(p, kParametersPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    add_parts(parts.data() + begin, blocks, p, end - begin, data_scale, gradient.data() + begin);
  });
}

}  // namespace

double pair_loss_of_scores(ExecutionContext& context, std::span<const PairTerm> terms,
                           std::span<const float> scores) {
  const auto count = std::ssize(terms);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto sums = scratch.take<double>((count + kTermsPerBlock - 1) / kTermsPerBlock);
  context.for_blocks(count, kTermsPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    double sum = 0.0;
    for (std::int64_t t = begin; t < end; ++t) {
      const PairTerm& term = terms[t];
      const double z = double{scores[term.first]} - double{scores[term.second]};
      sum += pair_term_loss(z, term.weight, term.labels);
    }
    sums[begin / kTermsPerBlock] = sum;
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

void pair_slopes_of_scores(ExecutionContext& context, std::span<const PairTerm> terms,
                           std::span<const float> scores, std::span<double> slopes) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto of_terms = scratch.take<double>(terms.size());
  context.for_blocks(std::ssize(terms), kTermsPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    term_slopes(terms.data() + begin, end - begin, scores.data(), of_terms.data() + begin);
  });
  std::fill(slopes.begin(), slopes.end(), 0.0);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    slopes[terms[t].first] += of_terms[t];
    slopes[terms[t].second] -= of_terms[t];
  }
}

double parameter_loss(std::span<const float> theta, const PairObjective& objective) {
  return prior_loss(theta, objective) + linear_loss(theta, objective);
}

void add_parameter_gradient(std::span<const float> theta, const PairObjective& objective,
                            std::span<double> gradient) {
  for (std::size_t k = 0; k < objective.linear.size(); ++k) gradient[k] += objective.linear[k];
  if (objective.prior_weight == 0.0) return;
  for (std::size_t k = 0; k < theta.size(); ++k)
    gradient[k] += prior_slope(objective.prior_weight, double{theta[k]}, centre_at(objective, k));
}

double pair_loss_gradient(ExecutionContext& context, const NetworkShape& shape,
                          std::span<const float> theta, FeatureMatrix docs, std::span<const PairTerm> terms,
                          const PairObjective& objective, std::span<double> gradient) {
  double data = 0.0;
  gradient_pass(context, shape, theta, docs, terms, objective.data_scale, gradient, &data);
  add_parameter_gradient(theta, objective, gradient);
  return objective.data_scale * data + parameter_loss(theta, objective);
}

void pair_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                   FeatureMatrix docs, std::span<const PairTerm> terms, const PairObjective& objective,
                   std::span<double> gradient) {
  gradient_pass(context, shape, theta, docs, terms, objective.data_scale, gradient, nullptr);
  add_parameter_gradient(theta, objective, gradient);
}

double pair_loss(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                 FeatureMatrix docs, std::span<const PairTerm> terms, const PairObjective& objective) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<float>(docs.docs);
  score_docs(context, shape, theta, docs, scores);
  return objective.data_scale * pair_loss_of_scores(context, terms, scores) +
         parameter_loss(theta, objective);
}

}  // namespace olrank
