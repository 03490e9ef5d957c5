#include "bench/product_unit.h"

#include <chrono>
#include <cmath>

#include "bench/measurement.h"
#include "core/ops/blas.h"

namespace olrank {
namespace {

using Clock = std::chrono::steady_clock;

double median_or_nan(const std::vector<double>& seconds) {
  return seconds.empty() ? std::nan("") : spread_of(seconds).median;
}

}  // namespace

void ProductUnit::measure(int times) {
  const auto multiply = [&] {
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, kSide, kSide, kSide, 1.0F, factor_.data(), kSide,
               factor_.data(), kSide, 0.0F, product_.data(), kSide);
  };
  if (factor_.empty()) {
    factor_.assign(kSide * kSide, 0.5F);
    product_.resize(kSide * kSide);
    multiply();
  }
  for (int time = 0; time < times; ++time) {
    const auto start = Clock::now();
    const double processor_start = olrank::processor_seconds();
    multiply();
    processor_seconds_.push_back(olrank::processor_seconds() - processor_start);
    seconds_.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

double ProductUnit::seconds() const {
  return median_or_nan(seconds_);
}

double ProductUnit::processor_seconds() const {
  return median_or_nan(processor_seconds_);
}

}  // namespace olrank
