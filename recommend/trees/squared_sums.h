#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/math/host_device.h"
#include "recommend/reviews.h"

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

// The squared error of rows that share a factor x, Σ (r − x·v)² = Σ r² − 2 x·Σ r v + xᵀ (Σ v vᵀ) x, needs
// three sums only. They add up over rows, so that every split of a node is measured without its ratings.
// Layout: the lower triangle of Σ v vᵀ row by row, then Σ r v, then Σ r².

inline std::int64_t squared_sums_size(int dimension) {
  return std::int64_t{dimension} * (dimension + 1) / 2 + dimension + 1;
}

/// The sums of each row of `ratings`; `columns` are the factors v.
std::vector<double> squared_sums_of_rows(const RatingRows& ratings, const FactorRows& columns);

void add_sums(std::span<double> to, std::span<const double> other);

/// The error of the ratings in `sums` if all rows have the factor x.
double squared_error(std::span<const double> sums, std::span<const double> x);

/// Adds the derivative of squared_error() to `gradient`.
void add_squared_error_gradient(std::span<const double> sums, std::span<const double> x,
                                std::span<double> gradient);

/// The minimum over x of squared_error(x) + λ‖x − anchor‖², λ > 0.
class RidgeSolver {
 public:
  explicit RidgeSolver(int dimension);

  /// By how much the objective falls from x = anchor to its minimum.
  double reduction(std::span<const double> sums, double lambda, std::span<const double> anchor);
  /// Where that minimum is. x may be the anchor's memory.
  void minimise(std::span<const double> sums, double lambda, std::span<const double> anchor,
                std::span<double> x);

 private:
  int dimension_;
  std::vector<double> factor_;   // of Cholesky, the lower triangle
  std::vector<double> inverse_;  // of its diagonal
  std::vector<double> solution_;
};

}  // namespace olrank
