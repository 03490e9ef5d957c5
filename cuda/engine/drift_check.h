#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/covariance/covariance_checks.h"
#include "core/ops/tangent_factors.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The probes of a drift check on the device, as columns of one product: unit vectors, then the gradients
/// of observed pairs. Its memory is kept, as freeing waits for the whole device.
class DriftCheck {
 public:
  explicit DriftCheck(const TangentShape& shape) : shape_(shape) {}

  /// Starts bringing the probes, whose pairs are among `kept`.
  void bring(Stream stream, const DriftProbes& probes, ResidentPairs& kept);
  std::int64_t columns() const { return columns_.vectors + columns_.pairs; }
  std::int64_t vectors() const { return columns_.vectors; }
  std::int64_t numbers() const { return columns() * columns_.parameters; }
  const double* v() const { return columns_.v; }
  /// The pairs' documents, winner then loser, and the place of their M.
  FactorRows pair_docs() { return {rows_.data(), 2 * columns_.pairs, shape_.factors()}; }
  double* m() { return m_.data(); }
  /// Places of A⁻¹v [columns × p], by the numbers that are checked and by others.
  double* own() { return own_.data(); }
  double* fresh(Stream stream) {
    fresh_.reserve(stream, numbers());
    return fresh_.data();
  }

  /// width_error() of each probe for y, own() or fresh(), with `of_a` for yᵀAy. Waits.
  std::vector<double> errors(Stream stream, const double* y, DriftColumns of_a);

  std::int64_t bytes() const { return bytes_of(packet_, rows_, m_, own_, fresh_, weights_, figures_); }

 private:
  TangentShape shape_;
  DriftColumns columns_;
  PinnedBytes host_;
  GrowingArray<std::byte>
      packet_;  // pairs, signs of their documents, vectors, and room for their gradients
  GrowingArray<float> rows_;
  GrowingArray<double> m_;
  GrowingArray<double> own_;
  GrowingArray<double> fresh_;
  GrowingArray<double> weights_;  // workspace
  GrowingArray<DriftFigure> figures_;
  PinnedBytes host_figures_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
