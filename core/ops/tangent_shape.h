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

}  // namespace olrank
