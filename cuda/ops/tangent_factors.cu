#include "cuda/ops/tangent_factors.h"

#include "cuda/ops/live_units.cuh"
#include "cuda/runtime/grid_size.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kWarpsPerBlock = 4;

// Writes the rest of a row after the hidden layers: h_0, δ_{L−1}, δ_L. A warp owns a document; blockIdx.y
// is the member.
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    finish_factors_kernel(const OutputLayer output, std::int64_t inputs, const float* theta,
                          const float* features, FactorRows rows) {
  const std::int64_t doc = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / 32;
  if (doc >= rows.docs) return;
  const std::int64_t member = blockIdx.y;
  float* row = rows.values + (member * rows.docs + doc) * rows.stride;
  const float* own_features = features + doc * inputs;
  for (std::int64_t c = threadIdx.x % 32; c < inputs; c += 32) row[c] = own_features[c];
  write_output_deltas(output, theta + member * output.parameters, 1.0F, row);
}

// A block copies one document's row: blockIdx.x alternates between winners and losers.
__global__ void gather_pairs_kernel(FactorRows rows, const std::int32_t* pairs, float* to) {
  const std::int64_t number = blockIdx.x;
  const float* row = rows.values + std::int64_t{pairs[number]} * rows.stride;
  for (std::int64_t c = threadIdx.x; c < rows.stride; c += blockDim.x) {
    to[number * rows.stride + c] = row[c];
  }
}

}  // namespace

void tangent_factors(Products& products, const NetworkStack& stack, const float* features,
                     const FactorRows& rows, const ScoreArrays& out) {
  if (rows.docs == 0 || stack.members == 0) return;
  forward(products, stack, features, rows, out);
  const dim3 grid{count_of(parts_of(rows.docs, kWarpsPerBlock)), static_cast<unsigned>(stack.members)};
  launch(finish_factors_kernel, grid, dim3{kWarpsPerBlock * 32}, 0, products.stream(),
         OutputLayer(stack.shape), stack.shape.inputs, stack.theta, features, rows);
  backward_hidden(products, stack, rows);
}

void gather_pairs(Stream stream, const FactorRows& rows, const std::int32_t* pairs, std::int64_t count,
                  float* to) {
  if (count == 0) return;
  launch(gather_pairs_kernel, dim3{static_cast<unsigned>(2 * count)}, dim3{128}, 0, stream, rows, pairs,
         to);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
