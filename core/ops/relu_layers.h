#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"
#include "core/runtime/execution_context.h"

// Passes of one block of documents through the layers, on the calling thread. Scores, tangent factors and
// training share them, so that they agree to the bit.
namespace olrank {

/// Documents per block of every pass. Changing it changes the bits of scores.
constexpr std::int64_t kDocsPerPass = 256;
/// Longest float32 sum over documents in a gradient; sums of such sums are in double.
constexpr std::int64_t kMostDocsPerFloatSum = 512;

/// Values of units, layer by layer, for a block of documents: the hidden units h_1 … h_{L−1}, or the deltas
/// δ_1 … δ_L. They are parts of rows of tangent factors, or rows in scratch memory.
struct UnitRows {
  float* first = nullptr;       // the first layer's, of the first document
  std::int64_t layer_step = 0;  // from one layer to the next
  std::int64_t stride = 0;      // from one document to the next

  float* layer(std::int64_t number) const { return first + number * layer_step; }
  UnitRows from(std::int64_t doc) const { return {first + doc * stride, layer_step, stride}; }
};

/// Views into rows of tangent factors.
UnitRows hidden_of_factors(const NetworkShape& shape, float* factors);
UnitRows deltas_of_factors(const NetworkShape& shape, float* factors);

/// Rows in scratch memory, padded to whole cache lines, valid as long as the enclosing frame.
UnitRows take_hidden(Scratch& scratch, const NetworkShape& shape, std::int64_t docs);
UnitRows take_deltas(Scratch& scratch, const NetworkShape& shape, std::int64_t docs);

/// The hidden units of `docs` ≤ kDocsPerPass documents.
void forward_hidden(const NetworkShape& shape, const float* theta, const float* features, std::int64_t docs,
                    UnitRows hidden);

/// Scores from them; `magnitudes` may be null.
void forward_output(const NetworkShape& shape, const float* theta, const float* features, UnitRows hidden,
                    std::int64_t docs, float* scores, float* magnitudes);

/// Deltas of all layers, from the output's derivative `output` of each document (one number for all where
/// `output_stride` is 0), times output_scale. ReLU's derivative at 0 is 0.
void backward_deltas(const NetworkShape& shape, const float* theta, const float* output,
                     std::int64_t output_stride, std::int64_t docs, UnitRows hidden, UnitRows deltas);

}  // namespace olrank
