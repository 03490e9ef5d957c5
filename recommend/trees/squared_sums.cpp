#include "recommend/trees/squared_sums.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace olrank {

std::vector<double> squared_sums_of_rows(const RatingRows& ratings, const FactorRows& columns) {
  const int dimension = columns.dimension();
  const std::int64_t size = squared_sums_size(dimension);
  std::vector<double> sums(static_cast<std::size_t>(ratings.rows() * size), 0.0);
  for (std::int64_t row = 0; row < ratings.rows(); ++row) {
    double* const of_row = sums.data() + row * size;
    const std::span<const std::int32_t> others = ratings.others_of(row);
    const std::span<const float> rated = ratings.ratings_of(row);
    for (std::size_t place = 0; place < rated.size(); ++place) {
      const std::span<const float> v = columns.row(others[place]);
      const double rating = rated[place];
      double* next = of_row;
      for (int a = 0; a < dimension; ++a) {
        for (int b = 0; b <= a; ++b) *next++ += static_cast<double>(v[a]) * v[b];
      }
      for (int a = 0; a < dimension; ++a) *next++ += rating * v[a];
      *next += rating * rating;
    }
  }
  return sums;
}

OLRANK_VECTOR_CLONES void add_sums(std::span<double> to, std::span<const double> other) {
  double* const target = to.data();
  const double* const source = other.data();
  const std::size_t size = to.size();
  for (std::size_t i = 0; i < size; ++i) target[i] += source[i];
}

double squared_error(std::span<const double> sums, std::span<const double> x) {
  const std::size_t dimension = x.size();
  const double* next = sums.data();
  double quadratic = 0.0;
  for (std::size_t a = 0; a < dimension; ++a) {
    double row = 0.0;
    for (std::size_t b = 0; b < a; ++b) row += *next++ * x[b];
    quadratic += x[a] * (2.0 * row + *next++ * x[a]);
  }
  double linear = 0.0;
  for (std::size_t a = 0; a < dimension; ++a) linear += *next++ * x[a];
  return *next - 2.0 * linear + quadratic;
}

void add_squared_error_gradient(std::span<const double> sums, std::span<const double> x,
                                std::span<double> gradient) {
  const std::size_t dimension = x.size();
  const double* next = sums.data();
  for (std::size_t a = 0; a < dimension; ++a) {
    double row = 0.0;
    for (std::size_t b = 0; b < a; ++b) {
      row += *next * x[b];
      gradient[b] += 2.0 * *next++ * x[a];
    }
    gradient[a] += 2.0 * (row + *next++ * x[a]);
  }
  for (std::size_t a = 0; a < dimension; ++a) gradient[a] -= 2.0 * *next++;
}

RidgeSolver::RidgeSolver(int dimension)
    : dimension_(dimension),
      factor_(static_cast<std::size_t>(dimension) * (dimension + 1) / 2),
      inverse_(dimension),
      solution_(dimension) {}

double RidgeSolver::reduction(std::span<const double> sums, double lambda, std::span<const double> anchor) {
  assert(lambda > 0.0);
  const double* const matrix = sums.data();
  const double* const right = matrix + factor_.size();
  // g = Σ r v − (Σ v vᵀ) a, and y = L⁻¹ g while L is made, row by row.
  for (int a = 0; a < dimension_; ++a) {
    const std::int64_t start = std::int64_t{a} * (a + 1) / 2;
    for (int b = 0; b < a; ++b) {
      const std::int64_t other = std::int64_t{b} * (b + 1) / 2;
      double value = matrix[start + b];
      for (int k = 0; k < b; ++k) value -= factor_[start + k] * factor_[other + k];
      factor_[start + b] = value * inverse_[b];
    }
    double pivot = matrix[start + a] + lambda;
    for (int k = 0; k < a; ++k) pivot -= factor_[start + k] * factor_[start + k];
    // At least λ but for rounding.
    factor_[start + a] = std::sqrt(pivot > 0.0 ? pivot : lambda);
    inverse_[a] = 1.0 / factor_[start + a];
  }
  for (int a = 0; a < dimension_; ++a) solution_[a] = right[a];
  const double* next = matrix;
  for (int a = 0; a < dimension_; ++a) {
    for (int b = 0; b < a; ++b) {
      solution_[a] -= *next * anchor[b];
      solution_[b] -= *next++ * anchor[a];
    }
    solution_[a] -= *next++ * anchor[a];
  }
  double reduction = 0.0;
  for (int a = 0; a < dimension_; ++a) {
    const std::int64_t start = std::int64_t{a} * (a + 1) / 2;
    for (int k = 0; k < a; ++k) solution_[a] -= factor_[start + k] * solution_[k];
    solution_[a] *= inverse_[a];
    reduction += solution_[a] * solution_[a];
  }
  return reduction;
}

void RidgeSolver::minimise(std::span<const double> sums, double lambda, std::span<const double> anchor,
                           std::span<double> x) {
  reduction(sums, lambda, anchor);
  for (int a = dimension_ - 1; a >= 0; --a) {
    for (int k = a + 1; k < dimension_; ++k) {
      solution_[a] -= factor_[std::int64_t{k} * (k + 1) / 2 + a] * solution_[k];
    }
    solution_[a] *= inverse_[a];
  }
  for (int a = 0; a < dimension_; ++a) x[a] = anchor[a] + solution_[a];
}

namespace {

OLRANK_VECTOR_CLONES void score_padded(const float* rows, std::int64_t count, const float* vector,
                                       int stride, float* scores) {
  for (std::int64_t row = 0; row < count; ++row)
    scores[row] = padded_product(rows + row * stride, vector, stride);
}

}  // namespace

void score_rows(const FactorRows& rows, std::span<const float> vector, std::span<float> scores) {
  std::vector<float> padded(rows.stride(), 0.0F);
  std::ranges::copy(vector, padded.begin());
  score_padded(rows.padded_values().data(), rows.rows(), padded.data(), rows.stride(), scores.data());
}

}  // namespace olrank
