#pragma once

#include "core/math/host_device.h"

// Products and sums that no compiler may fuse. GPU compilers contract a*b+c into one rounding by default,
// which is what kernels want for speed; where a result has to equal the CPU's to the bit, it is written
// with these. On the host, -ffp-contract=off does the same.
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
