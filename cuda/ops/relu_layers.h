#pragma once

#include <cstdint>

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
};

/// Rows of tangent factors, `stride` ≥ shape.factors() numbers apart.
struct FactorRows {
  float* values = nullptr;  // [members × docs × stride]
  std::int64_t docs = 0;
  std::int64_t stride = 0;
};

/// h_1 to h_{L−1} of every document, in float32; the place of h_0 is left alone.
void forward_hidden(Stream stream, const NetworkStack& stack, const float* features,
                    const FactorRows& rows);

/// Scores [members × docs] from those rows, and, where it is not null, the sum of the absolute terms behind
/// each. Sums are in double.
void forward_output(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
                    float* scores, float* magnitudes);

/// δ_1 to δ_{L−2} from δ_{L−1}, which with δ_L is there already.
void backward_hidden(Stream stream, const NetworkStack& stack, const FactorRows& rows);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
