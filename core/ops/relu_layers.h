#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"

// Passes of one block of documents through the layers, on the calling thread: what scores, tangent factors
// and training share, so that they agree to the bit.
namespace olrank {

/// Documents in one block of every pass. Scores keep their bits only while it stays what it is.
constexpr std::int64_t kDocsPerPass = 128;

/// The network's hidden units for `docs` ≤ kDocsPerPass documents: h_l goes to rows + layer(l).input, for
/// l = 1 to L − 1. Rows are `stride` numbers apart; the place of h_0 is left alone.
void forward_hidden(const NetworkShape& shape, const float* theta, const float* features, std::int64_t docs,
                    float* rows, std::int64_t stride);

/// Scores from those rows; `magnitudes` may be null.
void forward_output(const NetworkShape& shape, const float* theta, const float* features, const float* rows,
                    std::int64_t docs, std::int64_t stride, float* scores, float* magnitudes);

/// δ_l at rows + layer(l).delta for all layers, from the output's derivative `output` of each document (one
/// number for all where `output_stride` is 0), times output_scale. ReLU's derivative at 0 is 0.
void backward_deltas(const NetworkShape& shape, const float* theta, const float* output,
                     std::int64_t output_stride, std::int64_t docs, float* rows, std::int64_t stride);

}  // namespace olrank
