#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/io/state_archive.h"
#include "core/runtime/aligned_vector.h"

namespace olrank {

/// The lower triangle of a square matrix that grows at its end, in rows stride() numbers apart; zeros are
/// above the diagonal until somebody writes there. Copies share the rows that both have, so that threads
/// can read one while another appends to the original. Only one of the copies may grow.
class LowerTriangle {
 public:
  LowerTriangle() : values_(std::make_shared<AlignedVector<double>>()) {}
  /// Zeros.
  explicit LowerTriangle(std::int64_t size);

  std::int64_t size() const { return size_; }
  std::int64_t stride() const { return stride_; }
  double* row(std::int64_t i) { return values_->data() + i * stride_; }
  const double* row(std::int64_t i) const { return values_->data() + i * stride_; }
  double* data() { return values_->data(); }
  const double* data() const { return values_->data(); }
  /// Of the rows as they are stored, without unused capacity.
  std::int64_t bytes() const;

  /// More rows, which the caller writes.
  void grow(std::int64_t size);
  /// Forgets the rows from this number on.
  void truncate(std::int64_t size) { size_ = size; }
  /// A copy of these numbers in a matrix of `size` rows, zeros elsewhere.
  LowerTriangle extended(std::int64_t size) const;

  void save(StateWriter& state, std::string_view name) const;
  void load(StateReader& state, std::string_view name, std::int64_t size);

 private:
  std::shared_ptr<AlignedVector<double>> values_;
  std::int64_t size_ = 0;
  std::int64_t stride_ = 0;
};

}  // namespace olrank
