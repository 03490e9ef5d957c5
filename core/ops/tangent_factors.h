#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/relu_network.h"

namespace olrank {

/// How the gradient of a scoring function falls into factors: per layer an outer product δ ⊗ (h, 1) of
/// `rows` by `columns` numbers, with the 1 where there is a bias. A layer of one row is a plain vector; any
/// other parameters of a function are such a layer with δ = 1 and h their gradient. This is all that
/// posteriors know of the function.
class TangentShape {
 public:
  TangentShape() : TangentShape(NetworkShape()) {}
  TangentShape(const NetworkShape& shape);  // NOLINT(google-explicit-constructor): a network has this shape
  /// Layers with their places in θ, in ascending order and without gaps; those in a row of factors follow.
  explicit TangentShape(std::vector<NetworkLayer> layers);
  /// Gradients as they are, p numbers each.
  static TangentShape of_rows(std::int64_t parameters);

  /// p.
  std::int64_t parameters() const { return parameters_; }
  /// Numbers in a document's row of factors.
  std::int64_t factors() const { return factors_; }
  std::span<const NetworkLayer> layers() const { return layers_; }
  /// Rows of all layers.
  std::int64_t units() const { return units_; }
  std::int64_t most_rows() const { return most_rows_; }
  std::int64_t most_columns() const { return most_columns_; }

 private:
  void measure();

  std::vector<NetworkLayer> layers_;
  std::int64_t parameters_ = 0;
  std::int64_t factors_ = 0;
  std::int64_t units_ = 0;
  std::int64_t most_rows_ = 0;
  std::int64_t most_columns_ = 0;
};

/// Gradients g(x) = ∇_θ f(x; θ) in factored form: layer l's part is the outer product δ_l ⊗ h_{l−1} (and
/// δ_l for its bias), where δ includes the output's scale. A row holds h_0 δ_1 h_1 δ_2 … in float32, and
/// these numbers define g exactly. A non-owning view.
struct TangentFactors {
  const float* values = nullptr;  // [docs × shape.factors()]
  std::int64_t docs = 0;

  /// The shape is a NetworkShape or a TangentShape.
  const float* row(const auto& shape, std::int64_t doc) const { return values + doc * shape.factors(); }
};

/// The factors of every document, and its score unless `scores` is empty: score_docs()'s bits.
void tangent_factors(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                     FeatureMatrix docs, std::span<float> factors, std::span<float> scores = {},
                     std::span<float> magnitudes = {});

/// scale · g(x_i), parameters `begin` to `end`, of every document: rows [docs × (end − begin)], `stride`
/// numbers apart. Runs on the calling thread.
void expand_docs(const TangentShape& shape, TangentFactors docs, double scale, std::int64_t begin,
                 std::int64_t end, double* rows, std::int64_t stride);

/// Expands pairs: scale · (g(winner) − g(loser)); pair s is documents 2s (winner) and 2s + 1 (loser).
void expand_pairs(const TangentShape& shape, TangentFactors pairs, double scale, std::int64_t begin,
                  std::int64_t end, double* rows, std::int64_t stride);

}  // namespace olrank

// Inner products of gradients from their factors,
// k(x, x') = g(x)·g(x') = Σ_l (δ_l·δ'_l)(h_{l−1}·h'_{l−1} + 1 with a bias), in double throughout. A set of
// pairs is a set of documents, winner then loser; its gradients are g_s = g(winner) − g(loser).
namespace olrank {

/// kernel [docs × docs] = scale · g(x_i)·g(x_j).
void doc_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                double* kernel);

/// kernel [pairs × docs] = scale · g_s·g(x_j), rows `stride` numbers apart.
void pair_doc_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     TangentFactors docs, double scale, double* kernel, std::int64_t stride);

/// kernel [pairs × others] = scale · g_s·g_t, rows `stride` numbers apart.
void pair_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                 TangentFactors others, double scale, double* kernel, std::int64_t stride);

}  // namespace olrank
