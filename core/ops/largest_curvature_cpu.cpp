#include "core/ops/largest_curvature.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/ops/gradient_products.h"

namespace olrank {

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
