#pragma once

#include <cstdint>
#include <memory>

#include "core/device/visible_gpus.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Cholesky factorisations of matrices [n × n] in double on the device, by cuSOLVER. Matrices are
/// row-major; of A, L and their inverses the lower triangle is read and written, and what lies above the
/// diagonal is undefined after each call. Deterministic. Every call allocates and waits, so none belongs in
/// a round.
class Factorisation {
 public:
  /// Whether a matrix of this size and as much workspace take at most half of the memory that is free now,
  /// which leaves the other half to trials beside this one.
  static bool has_room(std::int64_t n);

  explicit Factorisation(std::int64_t n);
  ~Factorisation();

  /// A ← L with A = L Lᵀ. Returns whether A is positive definite; if it is not, A is lost.
  bool factorise(Stream stream, double* a);
  /// x [columns × n] ← x A⁻¹: A⁻¹ times each.
  void solve(Stream stream, const double* l, std::int64_t columns, double* x);
  /// L ← L⁻¹.
  void invert_factor(Stream stream, double* l);
  /// L ← A⁻¹.
  void invert_from_factor(Stream stream, double* l);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// cuSOLVER.
DeviceLibrary factorisation_library();

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
