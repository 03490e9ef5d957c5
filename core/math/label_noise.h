#pragma once

#include <cmath>

#include "core/math/exact.h"
#include "core/math/host_device.h"

// Noise on the labels of an ensemble member's training, γ ~ N(0, ν²) a pair. The loss is linear in the
// labels, so the noise of a pair's repetitions counts as their sum, N(0, weight ν²): one draw a term has
// the distribution of one draw a repetition. CPU and kernels give the same bits.
namespace olrank {

/// A term's labels with noise; `deviation` is ν, `normal` a standard normal draw.
OLRANK_HOST_DEVICE inline double noisy_labels(double labels, double weight, double deviation,
                                              double normal) {
  return exact_add(labels, exact_mul(exact_mul(deviation, std::sqrt(weight)), normal));
}

/// A term's noise grows by this change when the weight of its pairs goes from `before` to `after`. The
/// changes of any course add up to the noise of the last weight.
OLRANK_HOST_DEVICE inline double noise_change(double before, double after, double deviation,
                                              double normal) {
  return exact_mul(exact_mul(deviation, exact_add(std::sqrt(after), -std::sqrt(before))), normal);
}

/// Labels of some of a term's pairs, with their share of the noise of all: of weight `weight` out of `all`.
OLRANK_HOST_DEVICE inline double noisy_labels_of_share(double labels, double weight, double all,
                                                       double deviation, double normal) {
  if (weight == 0.0) return labels;
  return exact_add(labels, exact_mul(weight / all, noisy_labels(0.0, all, deviation, normal)));
}

/// The share of a term's noise that each of its repetitions carries.
OLRANK_HOST_DEVICE inline double noise_per_pair(double noisy, double labels, double weight) {
  return (noisy - labels) / weight;
}

/// The labels of one repetition that is a term of its own.
OLRANK_HOST_DEVICE inline double noisy_pair_labels(double weight, int first_wins, double noise) {
  return weight * first_wins + noise;
}

}  // namespace olrank
