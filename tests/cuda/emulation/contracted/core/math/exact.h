#pragma once

#include "core/math/host_device.h"

// The twin for code whose products and sums the compiler fuses: these stay apart, as on a device.
namespace olrank {

inline double exact_mul(double a, double b) {
  double product = a * b;
  asm("" : "+x"(product));  // the compiler cannot see where it comes from
  return product;
}

inline double exact_add(double a, double b) {
  asm("" : "+x"(a), "+x"(b));
  return a + b;
}

}  // namespace olrank
