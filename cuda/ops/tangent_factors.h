#pragma once

#include <cstdint>

#include "core/device/network_spec.h"
#include "core/math/portable_exp.h"
#include "core/ops/relu_network.h"
#include "core/ops/tangent_factors.h"
#include "cuda/runtime/products.h"

// Passes of documents through the layers of one network or of N side by side, on the device. All arrays are
// on the device, laid out as core/ops/relu_network.h says; stacked arrays hold one member after another.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Whether cuBLASLt multiplies a query's layers, too: where it is needed, as our kernel has no backward
/// pass between hidden layers, or products are so large that it is faster.
constexpr std::int64_t kLeastWidthOfLibrary = 256;
inline bool library_multiplies(const NetworkShape& shape) {
  return shape.depth > 2 || shape.width >= kLeastWidthOfLibrary;
}

/// N networks of one shape.
struct NetworkStack {
  NetworkShape shape;
  const float* theta = nullptr;  // [members × p]
  std::int64_t members = 1;
  /// The number of members in all stacks together; 0: this stack is the only one. Sums are split by it, so
  /// that members get the same bits in several stacks as in one.
  std::int64_t of = 0;
  /// They are those of the history or of a fold: cuBLASLt then multiplies at any width.
  bool many_docs = false;
  /// Numbers from one member's features to the next's; 0: all members have the same. Our own kernel takes
  /// only 0.
  std::int64_t features_step = 0;

  std::int64_t all() const { return of == 0 ? members : of; }
  bool by_library() const { return many_docs || library_multiplies(shape); }
};

/// Rows of tangent factors, `stride` ≥ shape.factors() numbers apart.
struct FactorRows {
  float* values = nullptr;  // [members × docs × stride]
  std::int64_t docs = 0;
  std::int64_t stride = 0;
};

/// Output arrays for scores.
struct ScoreArrays {
  float* scores = nullptr;      // [members × docs]; null for none
  float* magnitudes = nullptr;  // the sum of the absolute terms behind each score; may be null
};

/// h_1 to h_{L−1} of every document, and scores from them, in double; h_0 is
/// not written. If one tile of our kernel covers the last hidden layer, it computes the scores too.
void forward(Products& products, const NetworkStack& stack, const float* features, const FactorRows& rows,
             const ScoreArrays& out);

/// δ_1 to δ_{L−2} from δ_{L−1}. δ_{L−1} and δ_L must have been written.
void backward_hidden(Products& products, const NetworkStack& stack, const FactorRows& rows);

/// All layers of a network's gradient, as a kernel argument. Units are the rows of all layers, one layer
/// after another.
struct LayerTable {
  std::int64_t depth = 0;
  std::int64_t parameters = 0;
  std::int64_t width = 0;  // rows of each layer but the last, which has no more
  NetworkLayer layer[kMostDeviceLayers];

  /// Throws InvalidArgument for more than kMostDeviceLayers, and for layers that are not a network's.
  explicit LayerTable(const TangentShape& shape);

  OLRANK_HOST_DEVICE std::int64_t units() const { return (depth - 1) * width + layer[depth - 1].rows; }
  /// The number of a unit's layer.
  OLRANK_HOST_DEVICE std::int64_t layer_number(std::int64_t unit) const { return unit / width; }
  OLRANK_HOST_DEVICE const NetworkLayer& layer_of(std::int64_t unit) const {
    return layer[layer_number(unit)];
  }
  /// A unit's row in its layer.
  OLRANK_HOST_DEVICE std::int64_t row_of(std::int64_t unit) const { return unit % width; }
};

/// ∂score/∂θ_k of a document, from its row of factors.
OLRANK_HOST_DEVICE inline double gradient_number(const LayerTable& layers, const float* row,
                                                 std::int64_t k) {
  std::int64_t l = layers.depth - 1;
  while (layers.layer[l].weight > k) --l;
  const NetworkLayer& layer = layers.layer[l];
  if (layer.has_bias() && k >= layer.bias) return double{row[layer.delta + k - layer.bias]};
  const std::int64_t at = k - layer.weight;
  return double{row[layer.delta + at / layer.columns]} * double{row[layer.input + at % layer.columns]};
}

// The device version of core/ops/tangent_factors.h: inner products of gradients from their factors, in
// double, without intermediate results in global memory.

/// The kernels that the widths of a query need, in one launch: of_docs [docs × docs] (lower triangle) =
/// scale · g(x_i)·g(x_j), and of_pairs [pairs × docs] = scale · g_s·g(x_j), rows `stride` numbers apart.
/// Pair s is the rows 2s (winner) and 2s + 1 of `pairs`, which may have none. Without of_docs, null, only
/// the second.
void query_kernels(Stream stream, const TangentShape& shape, const FactorRows& docs,
                   const FactorRows& pairs, double scale, double* of_docs, double* of_pairs,
                   std::int64_t stride);

/// The tangent factors of every document under every member, and scores if `out` has arrays for them. The
/// device version of core/ops/tangent_factors.h; features [docs × d] are on the device too. Two launches
/// for two layers, three more for each further layer.
void tangent_factors(Products& products, const NetworkStack& stack, const float* features,
                     const FactorRows& rows, const ScoreArrays& out);

/// Copies the documents' rows of each pair, winner then loser, for the history of a covariance. pairs
/// [count × 2] are documents of `rows`, to [2 · count × stride].
void gather_pairs(Stream stream, const FactorRows& rows, const std::int32_t* pairs, std::int64_t count,
                  float* to);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
