#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "recommend/recommender.h"

namespace olrank {

/// Explicit factor models: Zhang, Lai, Zhang, Zhang, Liu, Ma, "Explicit factor models for explainable
/// recommendation based on phrase-level sentiment analysis", SIGIR 2014. Ratings A ≈ U₁V₁ᵀ + H₁H₂ᵀ, users'
/// attention X ≈ U₁Zᵀ and items' quality Y ≈ V₁Zᵀ, all non-negative, over observed entries.
/// Deviation: rows are solved one by one given the others, where the paper has multiplicative updates.
inline constexpr std::array<std::string_view, 7> kEfmKeys = {
    "dimension",        "penalty",          "user_feature_weight", "item_feature_weight",
    "hidden_dimension", "matched_features", "feature_share"};
std::int64_t plan_efm(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_efm(const RecommendSettings& settings, const TrainingData& data);
std::unique_ptr<Recommender> read_efm(StateReader& state, const ReviewCounts& counts);

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
