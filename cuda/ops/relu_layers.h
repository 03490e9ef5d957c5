#pragma once

#include <cstdint>

#include "core/ops/precision.h"
#include "core/ops/relu_network.h"
#include "cuda/runtime/stream.h"

// Passes of documents through the layers of one network or of N side by side, on the device. All arrays lie
// there. Layouts are those of core/ops/relu_layers.h; stacked arrays hold one member after another.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// N networks of one shape.
struct NetworkStack {
  NetworkShape shape;
  const float* theta = nullptr;  // [members × p]
  std::int64_t members = 1;
  /// Of how many members in all these are a part; 0: of these. How sums are cut depends on it, so that
  /// members get the same bits in several stacks as in one.
  std::int64_t of = 0;
  Precision precision = Precision::kFloat32;  // of products; in TF32 only where training asks for it

  std::int64_t all() const { return of == 0 ? members : of; }
};

/// Rows of tangent factors, `stride` ≥ shape.factors() numbers apart.
struct FactorRows {
  float* values = nullptr;  // [members × docs × stride]
  std::int64_t docs = 0;
  std::int64_t stride = 0;
};

/// Where scores go.
struct ScoreArrays {
  float* scores = nullptr;      // [members × docs]; null for none
  float* magnitudes = nullptr;  // the sum of the absolute terms behind each score; may be null
};

/// h_1 to h_{L−1} of every document, in the stack's precision, and scores from them, in double; the place
/// of h_0 is left alone. Where one tile holds a whole layer, scores take no launch of their own.
void forward(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
             const ScoreArrays& out);

/// δ_1 to δ_{L−2} from δ_{L−1}, which with δ_L is there already.
void backward_hidden(Stream stream, const NetworkStack& stack, const FactorRows& rows);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
