#pragma once

#include <cmath>

#include "core/math/host_device.h"

// The logistic loss of a preference, for the CPU and for kernels.
namespace olrank {

/// 1/(1 + e^{−z}), without overflow and to full precision at both ends.
OLRANK_HOST_DEVICE inline double sigmoid(double z) {
  const double e = std::exp(-std::fabs(z));
  const double smaller = e / (1.0 + e);
  return z < 0.0 ? smaller : 1.0 / (1.0 + e);
}

/// −log σ(z) = log(1 + e^{−z}).
OLRANK_HOST_DEVICE inline double logistic_loss(double z) {
  const double tail = std::log1p(std::exp(-std::fabs(z)));
  return z < 0.0 ? tail - z : tail;
}

}  // namespace olrank
