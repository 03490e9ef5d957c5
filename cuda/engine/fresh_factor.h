#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/runtime/execution_context.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/factorisation.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The Cholesky factor of a covariance's matrix, formed from all observed pairs at once and factorised by a
/// library, so that it shares no rounding with what grew pair by pair. Rebuilds take it over, and drift
/// checks compare with it. It exists for a moment only, since a matrix takes twice the memory of a packed
/// L⁻¹; matrices above kMost, or without room in the memory that is free, are left to other ways, which
/// give the same to rounding. All calls wait.
class FreshFactor {
 public:
  static constexpr std::int64_t kMost = 16'384;  // rows: 2 GiB

  /// Writes the lower triangle of the matrix [n × n].
  using Fill = FunctionRef<void(double* workspace, double* matrix)>;

  /// Null if n is 0 or above kMost, if memory has no room, or if rounding has made the matrix indefinite.
  static std::unique_ptr<FreshFactor> of(Stream stream, std::int64_t n, std::int64_t workspace, Fill fill);

  /// Factorises in memory of the caller, which then holds the inverse of the matrix, both triangles; `see`
  /// is shown the factor before. Returns false, with the memory's contents lost, where of() returns null.
  static bool replace_by_inverse(Stream stream, std::int64_t n, std::int64_t workspace, double* matrix,
                                 Fill fill, FunctionRef<void(const double* l)> see);

  /// L [n × n], or L⁻¹ after invert().
  const double* values() const { return values_.data(); }
  /// Returns false, with L lost, if memory is full.
  bool invert(Stream stream);
  /// The matrix's inverse times x, before invert().
  std::vector<double> solve(Stream stream, std::span<const double> x);

 private:
  explicit FreshFactor(std::int64_t n) : values_(n * n), x_(n), library_(n) {}

  DeviceArray<double> values_;
  DeviceArray<double> x_;
  Factorisation library_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
