#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/io/state_archive.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/product_shape.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A matrix in double on the device that grows at its end and is 0 beyond what was written, so that
/// products may take padded() sides: few shapes, and rows on multiples of 16 bytes.
class GrowingMatrix {
 public:
  static constexpr std::int64_t kPadding = 64;
  static std::int64_t padded(std::int64_t side) { return (side + kPadding - 1) / kPadding * kPadding; }

  /// The most rows and columns that it will have.
  GrowingMatrix(std::int64_t most_rows, std::int64_t most_columns)
      : most_rows_(padded(most_rows)), most_columns_(padded(most_columns)) {}

  /// Room for padded() sides. What does not fit moves into at least twice as many rows or columns.
  void reserve(Stream stream, std::int64_t rows, std::int64_t columns) {
    if (padded(rows) <= rows_ && padded(columns) <= stride_) return;
    GrowingMatrix larger(most_rows_, most_columns_);
    larger.rows_ = grown(rows_, rows, most_rows_);
    larger.stride_ = grown(stride_, columns, most_columns_);
    larger.values_ = DeviceArray<double>(larger.rows_ * larger.stride_);
    larger.clear(stream);
    copy_matrix(stream, rows_, stride_, {values_.data(), stride_}, larger.data(), larger.stride_);
    std::swap(*this, larger);  // freeing the old memory waits for the copy
  }
  void clear(Stream stream) { clear_rows(stream, 0, rows_); }
  void clear_rows(Stream stream, std::int64_t first, std::int64_t end) {
    if (first < end)
      fill_bytes(stream, row(first), 0, static_cast<std::size_t>((end - first) * stride_) * sizeof(double));
  }

  std::int64_t stride() const { return stride_; }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }
  double* row(std::int64_t i) { return values_.data() + i * stride_; }
  std::int64_t bytes() const { return values_.size() * static_cast<std::int64_t>(sizeof(double)); }

  /// The first rows and columns; to be called once the stream has finished.
  void save(StateWriter& state, std::string_view name, std::int64_t rows, std::int64_t columns) const {
    std::vector<double> values(rows * columns);
    for (std::int64_t i = 0; i < rows; ++i)
      copy_to_host(values_.data() + i * stride_, std::span(values).subspan(i * columns, columns));
    state.put(name, values);
  }
  void load(Stream stream, StateReader& state, std::string_view name, std::int64_t rows,
            std::int64_t columns) {
    std::vector<double> values(rows * columns);
    state.get_into(name, std::span(values));
    reserve(stream, rows, columns);
    clear(stream);
    OwnedStream::wait_for(stream);
    for (std::int64_t i = 0; i < rows; ++i)
      copy_to_device(std::span<const double>(values).subspan(i * columns, columns), row(i));
  }

 private:
  static std::int64_t grown(std::int64_t before, std::int64_t needed, std::int64_t most) {
    return padded(needed) <= before ? before : std::max(padded(needed), std::min(2 * before, most));
  }

  std::int64_t most_rows_;
  std::int64_t most_columns_;
  std::int64_t rows_ = 0;
  std::int64_t stride_ = 0;
  DeviceArray<double> values_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
