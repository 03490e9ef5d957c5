#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/runtime/execution_context.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/reviews.h"

namespace olrank {

/// One row x ≥ 0 of a non-negative factorisation: minimises Σ_o w_o (t_o − f_o · x)² + λ ‖x‖² over what was
/// added, by coordinate descent on the normal equations. Cichocki, Phan, "Fast local algorithms for large
/// scale nonnegative matrix and tensor factorizations", IEICE 2009.
class NonnegativeRow {
 public:
  explicit NonnegativeRow(std::int64_t size) : gram_(size * size), right_(size) {}

  void clear();
  /// `f` may be shorter than the row; the rest counts as 0.
  void add(std::span<const float> f, double target, double weight);
  /// Starts from x and improves it.
  void solve(double penalty, std::span<float> x) const;

 private:
  std::vector<double> gram_;  // Σ w f fᵀ, the upper triangle
  std::vector<double> right_;
};

/// Observations of the rows of a matrix: products with `columns` columns of the given matrix.
struct ObservedRows {
  const RatingRows* rows;
  const FactorMatrix* given;
  std::int64_t columns;
  double weight;
};

/// Solves each row of a matrix by itself, from where it is.
void fit_rows(ExecutionContext& context, FactorMatrix& fitted, double penalty,
              const std::vector<ObservedRows>& observed);

}  // namespace olrank
