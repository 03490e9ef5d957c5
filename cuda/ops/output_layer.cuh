#pragma once

#include <cmath>
#include <cstdint>

#include "core/ops/relu_network.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/tangent_factors.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The last layer of weights, and its connection to the layer below.
struct OutputLayer {
  NetworkLayer layer;
  std::int64_t hidden_delta = -1;  // offset of δ_{L−1} in a row; −1 without a hidden layer
  std::int64_t parameters = 0;     // p, from one member to the next
  float scale = 1.0F;
  double scale_in_double = 1.0;

  explicit OutputLayer(const NetworkShape& shape)
      : layer(shape.layer(shape.depth - 1)),
        parameters(shape.parameters()),
        scale(static_cast<float>(shape.output_scale)),
        scale_in_double(shape.output_scale) {
    if (shape.depth > 1) hidden_delta = shape.layer(shape.depth - 2).delta;
  }
};

/// δ_L = scale · slope and δ_{L−1} of one document, by the calling warp. ReLU's derivative at 0 is 0.
__device__ inline void write_output_deltas(const OutputLayer& output, const float* theta, float slope,
                                           float* row) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  const float delta = output.scale * slope;
  if (lane == 0) row[output.layer.delta] = delta;
  if (output.hidden_delta < 0) return;
  const float* weight = theta + output.layer.weight;
  for (std::int64_t r = lane; r < output.layer.columns; r += 32) {
    row[output.hidden_delta + r] = row[output.layer.input + r] > 0.0F ? delta * weight[r] : 0.0F;
  }
}

/// A score from the sum over the inputs of the output layer.
__device__ inline float score_of(const OutputLayer& output, const float* theta, double sum) {
  const double bias = output.layer.has_bias() ? double{theta[output.layer.bias]} : 0.0;
  return static_cast<float>(output.scale_in_double * (sum + bias));
}

/// A document's score from its last hidden units (its features without a hidden layer), by the calling
/// warp: products of float32 numbers are exact in double. The terms k and k + ⌊columns/2⌋ are
/// added first, so that the halves of a symmetric network, whose units are sums in one order, cancel to 0.
__device__ inline void write_score(const OutputLayer& output, const float* theta, const float* inputs,
                                   std::int64_t place, const ScoreArrays& out) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  const float* weight = theta + output.layer.weight;
  double sum = 0.0;
  double absolute = 0.0;
  const std::int64_t half = output.layer.columns / 2;
  for (std::int64_t k = lane; k < half; k += 32) {
    const double first = double{weight[k]} * double{inputs[k]};
    const double second = double{weight[k + half]} * double{inputs[k + half]};
    sum += first + second;
    absolute += std::fabs(first) + std::fabs(second);
  }
  if (lane == 0 && output.layer.columns % 2 != 0) {
    const std::int64_t last = output.layer.columns - 1;
    const double term = double{weight[last]} * double{inputs[last]};
    sum += term;
    absolute += std::fabs(term);
  }
  sum = warp_sum(sum);
  if (out.magnitudes != nullptr) absolute = warp_sum(absolute);
  if (lane != 0) return;
  out.scores[place] = score_of(output, theta, sum);
  if (out.magnitudes != nullptr) {
    const double bias = output.layer.has_bias() ? double{theta[output.layer.bias]} : 0.0;
    out.magnitudes[place] = static_cast<float>(output.scale_in_double * (absolute + std::fabs(bias)));
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
