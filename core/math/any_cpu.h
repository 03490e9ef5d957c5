#pragma once

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "core/math/normal.h"

namespace olrank {

inline bool environment_has(const char* name, std::string_view value) {
  const char* found = std::getenv(name);
  return found != nullptr && found == value;
}

/// Whether exp_of(), eˣ, and log_of(), ln x, are olrank's own functions: the C library rounds differently
/// on CPUs with and without FMA. blas::compute_as_on_any_cpu() sets it, and so do the variables that it
/// stands for.
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

}  // namespace olrank
