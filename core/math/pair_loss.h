#pragma once

#include <cmath>

#include "core/math/host_device.h"
#include "core/math/portable_exp.h"

// The logistic loss of a preference, for the CPU and for kernels.
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

}  // namespace olrank
