#pragma once

#include <cstdint>
#include <vector>

#include "apps/bench/measurement.h"

namespace olrank {

/// Sizes at which operations are measured; the defaults are the papers' network and a long query.
struct OpSizes {
  std::int64_t features = 136;  // d
  std::int64_t width = 100;     // m
  std::int64_t depth = 2;       // layers of weights
  std::int64_t docs = 120;      // V
  std::int64_t pairs = 5000;    // n, behind a full covariance
  int threads = 1;
};

/// Every operation of core/ops, "stem/function", counted and with its ceiling, and the widths that are made
/// of them. The one list for `olrank bench ops` and bench/ops_bench.cpp.
std::vector<BenchCase> op_cases(const OpSizes& sizes);

}  // namespace olrank
