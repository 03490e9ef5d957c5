#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "core/math/normal.h"
#include "core/math/pair_loss.h"

namespace olrank {

inline bool environment_has(const char* name, std::string_view value) {
  const char* found = std::getenv(name);
  return found != nullptr && found == value;
}

/// Whether exp_of(), eˣ, log_of(), ln x, and the others are olrank's own functions: the C library rounds
/// differently on CPUs with and without FMA. blas::compute_as_on_any_cpu() sets it, and so do the variables
/// that it stands for.
inline std::atomic<bool> own_functions =
    environment_has("OLRANK_BLAS", "plain") || environment_has("MKL_CBWR", "COMPATIBLE");

inline double exp_of(double x) {
  if (!own_functions.load(std::memory_order_relaxed) || std::isnan(x)) return std::exp(x);
  return x <= 0.0 ? portable_exp_nonpositive(x) : 1.0 / portable_exp_nonpositive(-x);
}

inline double log_of(double x) {
  const bool is_normal = x >= std::numeric_limits<double>::min() && x <= std::numeric_limits<double>::max();
  return own_functions.load(std::memory_order_relaxed) && is_normal ? portable_log(x) : std::log(x);
}

/// ln(1 + x) for x ≥ 0.
inline double log1p_of(double x) {
  const bool is_own =
      own_functions.load(std::memory_order_relaxed) && x >= std::numeric_limits<double>::min();
  if (!is_own) return std::log1p(x);
  return x <= 1.0 ? log1p_of_unit(x) : log_of(1.0 + x);
}

/// baseⁿ for n ≥ 0.
inline double power_of(double base, std::int64_t n) {
  if (!own_functions.load(std::memory_order_relaxed)) return std::pow(base, static_cast<double>(n));
  double power = 1.0;
  for (; n > 0; n /= 2, base *= base) power *= n % 2 != 0 ? base : 1.0;
  return power;
}

/// logistic_loss(z).
inline double logistic_loss_of(double z) {
  return own_functions.load(std::memory_order_relaxed) ? misorder_loss(-z) : logistic_loss(z);
}

}  // namespace olrank
