#pragma once

#include <cmath>
#include <cstdint>

#include "core/math/host_device.h"

// The step sizes of full-batch training on Σ cross-entropy + ½mλ ‖θ − θ₀‖², for CPU and device.
namespace olrank {

/// ½mλ, with the network's width m, or 1 if the prior is not scaled.
inline double prior_weight_of(double width, double lambda) {
  return 0.5 * width * lambda;
}

/// mλ: the prior's curvature, the same in every direction.
OLRANK_HOST_DEVICE inline double prior_curvature(double prior_weight) {
  return 2.0 * prior_weight;
}

/// σ = η/(κ + mλ), κ the largest curvature of the data term: η ≤ 1 keeps steps stable.
OLRANK_HOST_DEVICE inline double stable_step(double rate, double data_curvature, double prior) {
  return rate / (data_curvature + prior);
}

/// η of a training that `trainings` others came before.
inline double decayed_rate(double rate, double decay, std::int64_t trainings) {
  return rate * std::pow(decay, static_cast<double>(trainings));
}

/// Whether κ, found with `found_at` observed pairs (0: never), is found again: once the history has grown
/// by a tenth.
inline bool curvature_is_stale(std::int64_t observed, std::int64_t found_at) {
  return found_at == 0 || 10 * observed >= 11 * found_at;
}

/// A training that raised the loss is undone and repeated once with this share of its step.
inline constexpr double kRetryShare = 0.5;

}  // namespace olrank
