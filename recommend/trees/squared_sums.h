#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recommend/training_data.h"
#include "recommend/trees/factor_rows.h"

namespace olrank {

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
