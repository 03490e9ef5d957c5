#pragma once

#include <cmath>

#include "core/math/host_device.h"
#include "core/math/portable_exp.h"

// The logistic loss of a preference with z = f(first) − f(second), for the CPU and for kernels. A term
// folds repeated pairs: `weight` is the sum of their weights, `labels` that of those which the first
// document won.
namespace olrank {

/// 1/(1 + e^{−z}), without overflow and to full relative precision at both ends.
OLRANK_HOST_DEVICE inline double sigmoid(double z) {
  const double e = portable_exp_nonpositive(-std::fabs(z));
  return (z < 0.0 ? e : 1.0) / exact_add(1.0, e);
}

/// −log σ(z) = log(1 + e^{−z}).
OLRANK_HOST_DEVICE inline double logistic_loss(double z) {
  const double tail = std::log1p(portable_exp_nonpositive(-std::fabs(z)));
  return z < 0.0 ? tail - z : tail;
}

/// Cross-entropy of a term.
OLRANK_HOST_DEVICE inline double pair_term_loss(double z, double weight, double labels) {
  return labels * logistic_loss(z) + (weight - labels) * logistic_loss(-z);
}

/// Its derivative with respect to z; `probability` is σ(z).
OLRANK_HOST_DEVICE inline double pair_term_slope(double probability, double weight, double labels) {
  return weight * probability - labels;
}

/// Its second derivative; `probability` is σ(z).
OLRANK_HOST_DEVICE inline double pair_term_curvature(double probability, double weight) {
  return weight * (probability * (1.0 - probability));
}

/// One parameter's part of ‖θ − θ₀‖².
OLRANK_HOST_DEVICE inline double squared_distance(double theta, double centre) {
  const double distance = theta - centre;
  return distance * distance;
}

/// The derivative of prior_weight · (θ − θ₀)².
OLRANK_HOST_DEVICE inline double prior_slope(double prior_weight, double theta, double centre) {
  return 2.0 * prior_weight * (theta - centre);
}

}  // namespace olrank
