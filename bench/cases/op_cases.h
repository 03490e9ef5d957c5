#pragma once

#include <cstdint>
#include <vector>

#include "bench/measurement.h"

namespace olrank {

/// Sizes of the measured operations; the defaults are the papers' network and a long query.
struct OpSizes {
  std::int64_t features = 136;  // d
  std::int64_t width = 100;     // m
  std::int64_t depth = 2;       // layers of weights
  std::int64_t docs = 120;      // V
  std::int64_t pairs = 5000;    // n, observed by the full covariance
  int threads = 1;
};

/// Every operation of core/ops as "stem/function", with its counts and ceiling, and the pair widths built
/// on them. Used by `olrank bench ops` and bench/ops_bench.cpp.
std::vector<BenchCase> op_cases(const OpSizes& sizes);

}  // namespace olrank
