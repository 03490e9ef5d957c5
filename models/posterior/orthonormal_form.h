#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/posterior/full_form.h"

namespace olrank {

/// The form by an orthonormal basis of the observed gradients, for features of very different scale.
std::unique_ptr<FullForm> make_orthonormal_form(const TangentShape& shape, double lambda, double scale);

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
