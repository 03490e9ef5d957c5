#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "core/math/host_device.h"
#include "core/math/pair_loss.h"
#include "core/ops/gradient_products.h"
#include "core/ops/pair_training.h"

namespace olrank {
namespace {

constexpr std::int64_t kTermsPerBlock = 1024;

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

/// The gradient of the terms at θ, and their loss unless `loss` is null.
void gradient_of_terms(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                       FeatureMatrix docs, std::span<const PairTerm> terms, double data_scale,
                       std::span<double> gradient, double* loss) {
  const auto find_slopes = [&](std::span<const float> scores, std::span<double> slopes) {
    if (loss != nullptr) *loss = pair_loss_of_scores(context, terms, scores);
    pair_slopes_of_scores(context, terms, scores, slopes);
  };
  score_gradient(context, shape, theta, docs, find_slopes, data_scale, gradient);
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
  return std::accumulate(sums.begin(), sums.end(), 0.0);
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
  assert(objective.centre.empty() || objective.centre.size() == theta.size());
  assert(objective.linear.empty() || objective.linear.size() == theta.size());
  double distance_sq = 0.0;
  for (std::size_t k = 0; objective.prior_weight != 0.0 && k < theta.size(); ++k)
    distance_sq += squared_distance(double{theta[k]}, centre_at(objective, k));
  double linear = 0.0;
  for (std::size_t k = 0; k < objective.linear.size(); ++k)
    linear += objective.linear[k] * double{theta[k]};
  return objective.prior_weight * distance_sq + linear;
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
  gradient_of_terms(context, shape, theta, docs, terms, objective.data_scale, gradient, &data);
  add_parameter_gradient(theta, objective, gradient);
  return objective.data_scale * data + parameter_loss(theta, objective);
}

void pair_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                   FeatureMatrix docs, std::span<const PairTerm> terms, const PairObjective& objective,
                   std::span<double> gradient) {
  gradient_of_terms(context, shape, theta, docs, terms, objective.data_scale, gradient, nullptr);
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

double largest_curvature(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                         std::span<const PairTerm> terms, std::span<double> vector, double tolerance,
                         int most) {
  assert(std::ssize(vector) == shape.parameters());
  return largest_curvature(
      context, docs.docs,
      [&](std::span<const double> v, std::span<double> products) {
        gradient_products(context, shape, docs, v, products);
      },
      [&](std::span<const double> weights, std::span<double> sum) {
        gradient_sum(context, shape, docs, weights, sum);
      },
      terms, vector, tolerance, most);
}

double largest_curvature(ExecutionContext& context, std::int64_t docs,
                         FunctionRef<void(std::span<const double> v, std::span<double> products)> multiply,
                         FunctionRef<void(std::span<const double> weights, std::span<double> sum)> add_up,
                         std::span<const PairTerm> terms, std::span<double> vector, double tolerance,
                         int most) {
  if (terms.empty()) return 0.0;
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto products = scratch.take<double>(docs);
  const auto weights = scratch.take<double>(docs);
  const auto length = [&] {
    return std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
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
    multiply(vector, products);
    std::fill(weights.begin(), weights.end(), 0.0);
    double quotient = 0.0;
    for (const PairTerm& term : terms) {
      const auto first = static_cast<std::size_t>(term.first);
      const auto second = static_cast<std::size_t>(term.second);
      const double product = products[first] - products[second];
      weights[first] += term.weight * product;
      weights[second] -= term.weight * product;
      quotient += term.weight * product * product;
    }
    const bool settled = has_settled(iteration, quotient, estimate, tolerance);
    estimate = std::max(estimate, quotient);
    if (settled) break;
    add_up(weights, vector);
    norm = length();
    // All gradients are equal, or the start vector is orthogonal to all of them, which has probability 0.
    if (!(norm > 0.0)) break;
  }
  return curvature_of(estimate);
}

}  // namespace olrank
