#include "cuda/ops/relu_layers.h"

#include "cuda/ops/float_tile.cuh"
#include "cuda/ops/live_units.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kWarpsPerBlock = 4;
constexpr unsigned kGateThreads = 256;

/// The operands of one layer, for all members.
struct LayerPass {
  NetworkLayer layer;
  const float* theta;
  std::int64_t parameters;
  const float* inputs;  // h_{l−1} of member 0
  std::int64_t input_stride;
  std::int64_t input_member_stride;
  float* rows;
  std::int64_t stride;
  std::int64_t docs;
  std::int64_t result;  // place in a row of h_l
};

// h_l [docs × units] = φ(h_{l−1} W_lᵀ + b_l) in float32, k in order. Grid: tiles of units, tiles of
// documents, members; a block owns a tile, a thread a few numbers of it. Deterministic: no sum is shared.
// Where h_l is the last layer and one tile holds all of it, the block's warps go on to the scores.
template <class Fragment>
__device__ void forward_layer_kernel(const Grid& grid, const LayerPass& pass, const FloatTile& tile,
                                     const OutputLayer& output, const ScoreArrays& out) {
  const std::int64_t doc = grid.block.y * tile.rows();
  const std::int64_t unit = grid.block.x * tile.columns();
  const std::int64_t member = grid.block.z;
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

// δ_l ← φ'(h_l) ⊙ δ_l. A thread owns a number; grid.block.y is the member.
__device__ void gate_kernel(const Grid& grid, const FactorRows& rows, std::int64_t units,
                            std::int64_t hidden, std::int64_t delta) {
  const std::int64_t i = std::int64_t{grid.block.x} * kGateThreads + threadIdx.x;
  if (i >= rows.docs * units) return;
  const std::int64_t unit = i % units;
  float* row = rows.values + (grid.block.y * rows.docs + i / units) * rows.stride;
  if (!(row[hidden + unit] > 0.0F)) row[delta + unit] = 0.0F;
}

// Scores alone. A warp owns a document, grid.block.y is the member. Deterministic.
__device__ void score_kernel(const Grid& grid, const OutputLayer& output, const float* theta,
                             const float* inputs, std::int64_t stride, std::int64_t member_stride,
                             std::int64_t docs, const ScoreArrays& out) {
  const std::int64_t doc = std::int64_t{grid.block.x} * kWarpsPerBlock + threadIdx.x / 32;
  if (doc >= docs) return;
  const std::int64_t member = grid.block.y;
  write_score(output, theta + member * output.parameters, inputs + member * member_stride + doc * stride,
              member * docs + doc, out);
}

using ForwardKernel = Kernel<LayerPass, FloatTile, OutputLayer, ScoreArrays>;

ForwardKernel forward_kernel(const FloatTile& tile) {
  return for_fragment_of(tile, [](auto fragment) -> ForwardKernel {
    return kernel<forward_layer_kernel<decltype(fragment)>, FloatTile::kMostThreads>;
  });
}

void score(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
           const ScoreArrays& out) {
  const OutputLayer output(stack.shape);
  const bool hidden = stack.shape.depth > 1;
  const dim3 grid{count_of(parts_of(rows.docs, kWarpsPerBlock)), count_of(stack.members)};
  launch(kernel<score_kernel, kWarpsPerBlock * 32>, grid, dim3{kWarpsPerBlock * 32}, 0, stream, output,
         stack.theta, hidden ? rows.values + output.layer.input : features,
         hidden ? rows.stride : stack.shape.inputs, hidden ? rows.docs * rows.stride : 0, rows.docs, out);
}

/// Layer `l` by our kernel, which scores too if `out` has arrays and one tile covers the layer's units.
/// Returns whether it does.
bool multiply_layer(Stream stream, const NetworkStack& stack, std::int64_t l, const float* features,
                    const FactorRows& rows, const ScoreArrays& out) {
  const NetworkLayer layer = stack.shape.layer(l);
  LayerPass pass{
      layer,       stack.theta, stack.shape.parameters(),      features, layer.columns, 0, rows.values,
      rows.stride, rows.docs,   stack.shape.layer(l + 1).input};
  if (l > 0) {
    pass.inputs = rows.values + layer.input;
    pass.input_stride = rows.stride;
    pass.input_member_stride = rows.docs * rows.stride;
  }
  const FloatTile tile = choose_float_tile(rows.docs, layer.rows, stack.members);
  const std::int64_t unit_tiles = tile.column_tiles(layer.rows);
  const bool scores_too = out.scores != nullptr && unit_tiles == 1;
  launch(forward_kernel(tile),
         dim3{count_of(unit_tiles), count_of(tile.row_tiles(rows.docs)), count_of(stack.members)},
         dim3{count_of(tile.threads())}, tile.shared_bytes(), stream, pass, tile, OutputLayer(stack.shape),
         scores_too ? out : ScoreArrays{});
  return scores_too;
}

/// Matrices [docs × …] within the rows of all members, from place `first` of a row on.
MatrixPlaces within(const FactorRows& rows, std::int64_t first) {
  return {first, rows.stride, rows.docs * rows.stride};
}

/// h_l = φ(h_{l−1} W_lᵀ + b_l).
ProductShape forward_product(const NetworkStack& stack, std::int64_t l, const FactorRows& rows) {
  const NetworkLayer layer = stack.shape.layer(l);
  ProductShape shape;
  shape.rows = rows.docs;
  shape.columns = layer.rows;
  shape.inner = layer.columns;
  shape.transposes_b = true;
  shape.a = l == 0 ? MatrixPlaces{0, layer.columns, 0} : within(rows, layer.input);
  shape.b = {layer.weight, layer.columns, stack.shape.parameters()};
  shape.c = within(rows, stack.shape.layer(l + 1).input);
  shape.bias = layer.bias;
  shape.relu = true;
  shape.batch = stack.members;
  return shape;
}

/// δ_{l+1} W_{l+1}.
ProductShape backward_product(const NetworkStack& stack, std::int64_t l, const FactorRows& rows) {
  const NetworkLayer above = stack.shape.layer(l + 1);
  ProductShape shape;
  shape.rows = rows.docs;
  shape.columns = above.columns;
  shape.inner = above.rows;
  shape.a = within(rows, above.delta);
  shape.b = {above.weight, above.columns, stack.shape.parameters()};
  shape.c = within(rows, stack.shape.layer(l).delta);
  shape.batch = stack.members;
  return shape;
}

}  // namespace

void forward(Products& products, const NetworkStack& stack, const float* features, const FactorRows& rows,
             const ScoreArrays& out) {
  if (rows.docs == 0 || stack.members == 0) return;
  const Stream stream = products.stream();
  const std::int64_t hidden_layers = stack.shape.depth - 1;
  bool scored = out.scores == nullptr;
  for (std::int64_t l = 0; l < hidden_layers; ++l) {
    if (stack.by_library()) {
      products.multiply(forward_product(stack, l, rows), l == 0 ? features : rows.values, stack.theta,
                        rows.values);
    } else {
      scored |=
          multiply_layer(stream, stack, l, features, rows, l == hidden_layers - 1 ? out : ScoreArrays{});
    }
  }
  if (!scored) score(stream, stack, features, rows, out);
}

void backward_hidden(Products& products, const NetworkStack& stack, const FactorRows& rows) {
  if (rows.docs == 0 || stack.members == 0) return;
  for (std::int64_t l = stack.shape.depth - 3; l >= 0; --l) {
    products.multiply(backward_product(stack, l, rows), rows.values, stack.theta, rows.values);
    const NetworkLayer above = stack.shape.layer(l + 1);
    const std::int64_t numbers = rows.docs * above.columns;
    launch_each<kGateThreads>(kernel<gate_kernel, kGateThreads>, numbers, stack.members, products.stream(),
                              rows, above.columns, above.input, stack.shape.layer(l).delta);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
