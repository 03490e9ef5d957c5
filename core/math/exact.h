#pragma once

#include "core/math/host_device.h"

// Products and sums that compilers must not fuse. GPU compilers contract a*b+c into one rounding by
// default, for speed. Results that must match the CPU's to the bit use these functions instead. On the
// host, -ffp-contract=off has the same effect.
namespace olrank {

OLRANK_HOST_DEVICE inline double exact_mul(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

OLRANK_HOST_DEVICE inline double exact_add(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

}  // namespace olrank
