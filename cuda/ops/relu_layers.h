#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"
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

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
