#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace olrank {

/// Adds pairs to a Cholesky factor by rotations, so that nothing is squared before it is factorised.
class RootUpdate {
 public:
  /// L Lᵀ ← L Lᵀ + c cᵀ with L [n × n] lower triangular, rows `stride` numbers apart, n = c.size().
  void add(std::span<const double> c, double* l, std::int64_t stride);

 private:
  std::vector<double> cosine_;
  std::vector<double> sine_;
};

}  // namespace olrank
