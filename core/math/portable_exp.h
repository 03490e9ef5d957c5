#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/math/exact.h"
#include "core/math/host_device.h"

namespace olrank {

/// e^x for x ≤ 0 (0 below −708), relative error below 3e-16·(1 + |x|/700), by +, − and × alone: the same
/// bits on CPU and GPU and in every vector width, and without branches, so that compilers can vectorise
/// loops over it; selecting with ?: became a branch under GCC 12, masks do not. x = n ln 2 + r with |r| ≤
/// ln 2 / 2, and e^r by its series, whose 14 terms leave less than 1e-17.
OLRANK_HOST_DEVICE inline double portable_exp_nonpositive(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // 42 bits: times any n it is exact
  constexpr double kLn2Low = 0x1.ef35793c76730p-45;
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest whole number in the low bits
  const std::uint64_t kept = std::uint64_t{0} - static_cast<std::uint64_t>(!(x < -708.0));
  std::uint64_t x_bits = 0;
  std::memcpy(&x_bits, &x, sizeof x_bits);
  x_bits &= kept;
  double clamped = 0.0;  // x, or 0 below −708
  std::memcpy(&clamped, &x_bits, sizeof clamped);
  const double shifted = exact_add(exact_mul(clamped, kLog2E), kRound);
  const double n = exact_add(shifted, -kRound);
  const double r = exact_add(exact_add(clamped, -exact_mul(n, kLn2High)), -exact_mul(n, kLn2Low));
  double sum = 1.0 / 6227020800.0;  // 1/13!
  sum = exact_add(exact_mul(sum, r), 1.0 / 479001600.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 39916800.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 3628800.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 362880.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 40320.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 5040.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 720.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 120.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 24.0);
  sum = exact_add(exact_mul(sum, r), 1.0 / 6.0);
  sum = exact_add(exact_mul(sum, r), 0.5);
  sum = exact_add(exact_mul(sum, r), 1.0);
  sum = exact_add(exact_mul(sum, r), 1.0);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof bits);
  const std::uint64_t power_bits = ((bits + 1023) << 52) & kept;  // 2ⁿ, normal since n ≥ −1022; or 0
  double power = 0.0;
  std::memcpy(&power, &power_bits, sizeof power);
  return exact_mul(sum, power);
}

/// Euclidean norm.
inline double norm(std::span<const double> vector) {
  double sum = 0.0;
  for (const double value : vector) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace olrank
