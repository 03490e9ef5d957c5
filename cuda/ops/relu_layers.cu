#include "cuda/ops/relu_layers.h"

#include "cuda/ops/float_tile.cuh"
#include "cuda/ops/output_layer.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kWarpsPerBlock = 4;

/// The operands of one layer, for all members.
struct LayerPass {
  NetworkLayer layer;
  const float* theta;
  std::int64_t parameters;
  const float* inputs;  // of member 0; h_{l−1} forward, δ_{l+1} backward
  std::int64_t input_stride;
  std::int64_t input_member_stride;
  float* rows;
  std::int64_t stride;
  std::int64_t docs;
  std::int64_t result;     // place in a row of h_l, or of δ_l
  std::int64_t gate = -1;  // backward: place of h_l, which lets δ_l through where it is positive
};

// h_l [docs × units] = φ(h_{l−1} W_lᵀ + b_l) in float32 or TF32, k in order. Grid: tiles of units, tiles of
// documents, members; a block owns a tile, a thread a few numbers of it. Deterministic: no sum is shared.
// Where h_l is the last layer and one tile holds all of it, the block's warps go on to the scores.
template <class Fragment>
__global__ void __launch_bounds__(FloatTile::kMostThreads)
    forward_layer_kernel(const LayerPass pass, const FloatTile tile, const OutputLayer output,
                         const ScoreArrays out) {
  const std::int64_t doc = blockIdx.y * tile.rows();
  const std::int64_t unit = blockIdx.x * tile.columns();
  const std::int64_t member = blockIdx.z;
  const float* theta = pass.theta + member * pass.parameters;
  const FloatOperand<true> inputs{pass.inputs + member * pass.input_member_stride, pass.input_stride,
                                  pass.docs, pass.layer.columns, doc};
  const FloatOperand<true> weights{theta + pass.layer.weight, pass.layer.columns, pass.layer.rows,
                                   pass.layer.columns, unit};
  Fragment fragment;
  multiply_tile(tile, 0, pass.layer.columns, inputs, weights, fragment);
  float* rows = pass.rows + member * pass.docs * pass.stride;
  fragment.for_each(tile, [&](int i, int j, float value) {
    if (doc + i >= pass.docs || unit + j >= pass.layer.rows) return;
    if (pass.layer.has_bias()) value += theta[pass.layer.bias + unit + j];
    rows[(doc + i) * pass.stride + pass.result + unit + j] = value > 0.0F ? value : 0.0F;
  });
  if (out.scores == nullptr) return;
  __syncthreads();  // a warp scores documents whose units other warps wrote
  const std::int64_t end = min(pass.docs, doc + tile.rows());
  for (std::int64_t i = doc + threadIdx.x / 32; i < end; i += blockDim.x / 32) {
    write_score(output, theta, rows + i * pass.stride + pass.result, member * pass.docs + i, out);
  }
}

// δ_l [docs × units] = φ'(h_l) ⊙ δ_{l+1} W_{l+1}, float32 or TF32, k in order; `layer` is l + 1. Grid and
// blocks as above.
template <class Fragment>
__global__ void __launch_bounds__(FloatTile::kMostThreads)
    backward_layer_kernel(const LayerPass pass, const FloatTile tile) {
  const std::int64_t doc = blockIdx.y * tile.rows();
  const std::int64_t unit = blockIdx.x * tile.columns();
  const std::int64_t member = blockIdx.z;
  const FloatOperand<true> deltas{pass.inputs + member * pass.input_member_stride, pass.input_stride,
                                  pass.docs, pass.layer.rows, doc};
  const FloatOperand<false> weights{pass.theta + member * pass.parameters + pass.layer.weight,
                                    pass.layer.columns, pass.layer.columns, pass.layer.rows, unit};
  Fragment fragment;
  multiply_tile(tile, 0, pass.layer.rows, deltas, weights, fragment);
  float* rows = pass.rows + member * pass.docs * pass.stride;
  fragment.for_each(tile, [&](int i, int j, float value) {
    if (doc + i >= pass.docs || unit + j >= pass.layer.columns) return;
    float* row = rows + (doc + i) * pass.stride;
    row[pass.result + unit + j] = row[pass.gate + unit + j] > 0.0F ? value : 0.0F;
  });
}

// Scores alone. A warp owns a document, blockIdx.y is the member. Deterministic.
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    score_kernel(const OutputLayer output, const float* theta, const float* inputs, std::int64_t stride,
                 std::int64_t member_stride, std::int64_t docs, const ScoreArrays out) {
  const std::int64_t doc = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / 32;
  if (doc >= docs) return;
  const std::int64_t member = blockIdx.y;
  write_score(output, theta + member * output.parameters, inputs + member * member_stride + doc * stride,
              member * docs + doc, out);
}

unsigned count(std::int64_t n) {
  return static_cast<unsigned>(n);
}

using ForwardKernel = void (*)(LayerPass, FloatTile, OutputLayer, ScoreArrays);
using BackwardKernel = void (*)(LayerPass, FloatTile);

ForwardKernel forward_kernel(const FloatTile& tile) {
  return for_fragment_of(
      tile, [](auto fragment) -> ForwardKernel { return forward_layer_kernel<decltype(fragment)>; });
}

BackwardKernel backward_kernel(const FloatTile& tile) {
  return for_fragment_of(
      tile, [](auto fragment) -> BackwardKernel { return backward_layer_kernel<decltype(fragment)>; });
}

dim3 pass_grid(const FloatTile& tile, std::int64_t docs, std::int64_t units, std::int64_t members) {
  return dim3{count(tile.column_tiles(units)), count(tile.row_tiles(docs)), count(members)};
}

void score(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
           const ScoreArrays& out) {
  const OutputLayer output(stack.shape);
  const bool hidden = stack.shape.depth > 1;
  const dim3 grid{count((rows.docs + kWarpsPerBlock - 1) / kWarpsPerBlock), count(stack.members)};
  launch(score_kernel, grid, dim3{kWarpsPerBlock * 32}, 0, stream, output, stack.theta,
         hidden ? rows.values + output.layer.input : features, hidden ? rows.stride : stack.shape.inputs,
         hidden ? rows.docs * rows.stride : 0, rows.docs, out);
}

}  // namespace

void forward(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
             const ScoreArrays& out) {
  if (rows.docs == 0 || stack.members == 0) return;
  const std::int64_t hidden_layers = stack.shape.depth - 1;
  bool scored = out.scores == nullptr;
  for (std::int64_t l = 0; l < hidden_layers; ++l) {
    const NetworkLayer layer = stack.shape.layer(l);
    LayerPass pass{
        layer,       stack.theta, stack.shape.parameters(),      features, layer.columns, 0, rows.values,
        rows.stride, rows.docs,   stack.shape.layer(l + 1).input};
    if (l > 0) {
      pass.inputs = rows.values + layer.input;
      pass.input_stride = rows.stride;
      pass.input_member_stride = rows.docs * rows.stride;
    }
    const FloatTile tile = choose_float_tile(rows.docs, layer.rows, stack.members, stack.precision);
    const bool scores_too = !scored && l == hidden_layers - 1 && tile.column_tiles(layer.rows) == 1;
    launch(forward_kernel(tile), pass_grid(tile, rows.docs, layer.rows, stack.members),
           dim3{count(tile.threads())}, tile.shared_bytes(), stream, pass, tile, OutputLayer(stack.shape),
           scores_too ? out : ScoreArrays{});
    scored = scored || scores_too;
  }
  if (!scored) score(stream, stack, features, rows, out);
}

void backward_hidden(Stream stream, const NetworkStack& stack, const FactorRows& rows) {
  if (rows.docs == 0 || stack.members == 0) return;
  for (std::int64_t l = stack.shape.depth - 3; l >= 0; --l) {
    const NetworkLayer above = stack.shape.layer(l + 1);
    const LayerPass pass{above,
                         stack.theta,
                         stack.shape.parameters(),
                         rows.values + above.delta,
                         rows.stride,
                         rows.docs * rows.stride,
                         rows.values,
                         rows.stride,
                         rows.docs,
                         stack.shape.layer(l).delta,
                         above.input};
    const FloatTile tile = choose_float_tile(rows.docs, above.columns, stack.members, stack.precision);
    launch(backward_kernel(tile), pass_grid(tile, rows.docs, above.columns, stack.members),
           dim3{count(tile.threads())}, tile.shared_bytes(), stream, pass, tile);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
