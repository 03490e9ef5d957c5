#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/math/host_device.h"
#include "core/math/pair_loss.h"

// The scalar mathematics of losses of whole lists, for the CPU and for kernels.
namespace olrank {

/// log(1 + x) for 0 ≤ x ≤ 1, to full relative precision, without branches and calls, so that compilers can
/// vectorise loops over it. It is 2 artanh(t) with t = x/(2 + x); above √2 − 1, 1 + x is halved first, so
/// that |t| ≤ 0.172 and 11 terms of the series leave less than 1e-18.
OLRANK_HOST_DEVICE inline double log1p_of_unit(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  // 1 or 0, by a mask: of a selection GCC 12 makes a branch.
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(x > 0.41421356237309503);
  const std::uint64_t bits = mask & 0x3FF0000000000000U;
  double halved = 0.0;
  std::memcpy(&halved, &bits, sizeof halved);
  const double t = (x - halved) / (x + 2.0 + halved);
  const double u = t * t;
  double sum = 1.0 / 21.0;
  sum = sum * u + 1.0 / 19.0;
  sum = sum * u + 1.0 / 17.0;
  sum = sum * u + 1.0 / 15.0;
  sum = sum * u + 1.0 / 13.0;
  sum = sum * u + 1.0 / 11.0;
  sum = sum * u + 1.0 / 9.0;
  sum = sum * u + 1.0 / 7.0;
  sum = sum * u + 1.0 / 5.0;
  sum = sum * u + 1.0 / 3.0;
  sum = sum * u + 1.0;
  return halved * kLn2 + 2.0 * t * sum;
}

/// What a pair of documents of different grades adds to RankSVM's loss, with `lead` the score of the worse
/// document less that of the better one.
OLRANK_HOST_DEVICE inline double hinge_loss(double lead) {
  return 1.0 + lead > 0.0 ? 1.0 + lead : 0.0;
}

/// Its derivative with respect to `lead`; 0 at the kink.
OLRANK_HOST_DEVICE inline double hinge_slope(double lead) {
  return 1.0 + lead > 0.0 ? 1.0 : 0.0;
}

/// log(1 + e^lead), as logistic_loss(−lead) but without calls.
OLRANK_HOST_DEVICE inline double misorder_loss(double lead) {
  return (lead > 0.0 ? lead : 0.0) + log1p_of_unit(portable_exp_nonpositive(-std::fabs(lead)));
}

/// One document's part of the gradient of −Σ p_i G(y_i), p = softmax(s/σ); `sharpness` is 1/σ.
OLRANK_HOST_DEVICE inline double smooth_dcg_slope(double probability, double gain, double mean_gain,
                                                  double sharpness) {
  return probability * (mean_gain - gain) * sharpness;
}

}  // namespace olrank
