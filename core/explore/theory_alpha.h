#pragma once

#include <cmath>

#include "core/math/host_device.h"

namespace olrank {

/// α_t = c₁(√(ν² log(det A/(δ² det λI))) + √λ c₂): Jia and Wang, "Learning neural ranking models online
/// from implicit user feedback", WWW 2022.
struct TheoryAlpha {
  /// ν: clicks lie in [0, 1], so their noise is ½-sub-Gaussian.
  static constexpr double kClickNoise = 0.5;

  double c1 = 1.0;
  double c2 = 1.0;
  double delta = 0.1;
  double lambda = 1.0;

  OLRANK_HOST_DEVICE double at(double log_det) const {
    const double log_ratio = log_det - 2.0 * std::log(delta);
    return c1 * (kClickNoise * std::sqrt(log_ratio) + std::sqrt(lambda) * c2);
  }
};

}  // namespace olrank
