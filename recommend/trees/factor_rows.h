#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/runtime/vector_clones.h"

namespace olrank {

/// One latent factor a row. Rows are padded with zeros to a multiple of eight numbers, so that loops over
/// whole vectors need no tail.
class FactorRows {
 public:
  static constexpr int kLanes = 8;

  FactorRows() = default;
  FactorRows(std::int64_t rows, int dimension)
      : rows_(rows),
        dimension_(dimension),
        stride_(padded(dimension)),
        values_(static_cast<std::size_t>(rows * stride_)) {}

  static int padded(int dimension) { return (dimension + kLanes - 1) / kLanes * kLanes; }

  std::int64_t rows() const { return rows_; }
  int dimension() const { return dimension_; }
  int stride() const { return stride_; }

  std::span<float> row(std::int64_t number) {
    return {values_.data() + number * stride_, static_cast<std::size_t>(dimension_)};
  }
  std::span<const float> row(std::int64_t number) const {
    return {values_.data() + number * stride_, static_cast<std::size_t>(dimension_)};
  }

  /// All rows with their padding, to be saved and read back.
  std::span<const float> padded_values() const { return values_; }
  std::span<float> padded_values() { return values_; }

  bool operator==(const FactorRows&) const = default;

 private:
  std::int64_t rows_ = 0;
  int dimension_ = 0;
  int stride_ = 0;
  std::vector<float> values_;
};

/// The product of two padded rows, summed in fixed lanes: the same bits in every vector width.
OLRANK_ALWAYS_INLINE float padded_product(const float* left, const float* right, int stride) {
  constexpr int kLanes = FactorRows::kLanes;
  float lanes[kLanes] = {};
  for (int k = 0; k < stride; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += left[k + lane] * right[k + lane];
  }
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

/// Scores of all rows for one vector of the same padding.
void score_rows(const FactorRows& rows, std::span<const float> vector, std::span<float> scores);

/// u·v, summed in double.
inline double factor_product(std::span<const float> left, std::span<const float> right) {
  double sum = 0.0;
  for (std::size_t k = 0; k < left.size(); ++k) sum += static_cast<double>(left[k]) * right[k];
  return sum;
}

}  // namespace olrank
