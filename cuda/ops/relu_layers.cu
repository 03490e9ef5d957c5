#include "cuda/ops/relu_layers.h"

#include "cuda/ops/output_layer.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kWarpsPerBlock = 4;
constexpr unsigned kGateThreads = 256;

/// A block's tile of h_1. A thread owns two documents × four units: a query has few documents, which small
/// shares spread over many blocks. The inputs come through shared memory, 16 at a time.
struct LayerTile {
  static constexpr int kDepth = 16;
  static constexpr int kThreads = 128;
  static constexpr int kDocs = 2;
  static constexpr int kUnits = 4;
  static constexpr std::int64_t kMostShares = 32;  // along the units

  int unit_shares;
  int doc_shares;

  /// Tiles of equal size, so that 100 units are one.
  explicit LayerTile(std::int64_t layer_units) {
    const std::int64_t shares = parts_of(layer_units, kUnits);
    unit_shares = static_cast<int>(parts_of(shares, parts_of(shares, kMostShares)));
    doc_shares = kThreads / unit_shares;
  }
  OLRANK_HOST_DEVICE int docs() const { return kDocs * doc_shares; }
  OLRANK_HOST_DEVICE int units() const { return kUnits * unit_shares; }
  /// Distance between inputs of a side in shared memory: 4 more than a multiple of 32, so that a warp's
  /// stores have at most two-way bank conflicts, and 16-byte loads stay aligned.
  OLRANK_HOST_DEVICE static int step(int side) { return (side + 27) / 32 * 32 + 4; }
  /// Both sides, for kDepth inputs.
  OLRANK_HOST_DEVICE int numbers() const { return kDepth * (step(docs()) + step(units())); }
};

/// Starts copying inputs [first, first + kDepth) of `side` rows [rows × depth] to shared memory, as
/// neighbours; what lies outside is 0.
__device__ void stage_side(const float* from, std::int64_t stride, std::int64_t rows, int side,
                           std::int64_t first, std::int64_t depth, float* to) {
  const int k = static_cast<int>(threadIdx.x) % LayerTile::kDepth;
  to += k * LayerTile::step(side);
  for (int i = static_cast<int>(threadIdx.x) / LayerTile::kDepth; i < side;
       i += LayerTile::kThreads / LayerTile::kDepth) {
    if (i < rows && first + k < depth) {
      copy_async<1>(to + i, from + i * stride + first + k);
    } else {
      to[i] = 0.0F;
    }
  }
}

// h_1 [docs × units] = φ(h_0 W_1ᵀ + b_1) in float32, k in order. Grid: tiles of units, tiles of
// documents, members; a block owns a tile. Deterministic: no sum is shared. Where
// one tile holds all units, the block's warps go on to the scores. While one buffer of shared memory is
// multiplied, the other is filled.
__device__ void forward_layer_kernel(const Grid& grid, const NetworkLayer& layer, const float* all_theta,
                                     const float* features, const FactorRows& all_rows,
                                     const LayerTile& tile, const OutputLayer& output,
                                     const ScoreArrays& out) {
  const std::int64_t doc = std::int64_t{grid.block.y} * tile.docs();
  const std::int64_t unit = std::int64_t{grid.block.x} * tile.units();
  const std::int64_t member = grid.block.z;
  const std::int64_t depth = layer.columns;
  const float* theta = all_theta + member * output.parameters;
  const float* inputs = features + doc * depth;
  const float* weights = theta + layer.weight + unit * depth;
  const int doc_step = LayerTile::step(tile.docs());
  const int unit_step = LayerTile::step(tile.units());
  const auto stage = [&](std::int64_t first, float* buffer) {
    if (first < depth) {
      stage_side(inputs, depth, all_rows.docs - doc, tile.docs(), first, depth, buffer);
      stage_side(weights, depth, layer.rows - unit, tile.units(), first, depth,
                 buffer + LayerTile::kDepth * doc_step);
    }
    commit_copies();
  };
  const int share = static_cast<int>(threadIdx.x);
  const int own_doc = share / tile.unit_shares * LayerTile::kDocs;
  const int own_unit = share % tile.unit_shares * LayerTile::kUnits;
  const bool works = share < tile.unit_shares * tile.doc_shares;
  float sum[LayerTile::kDocs][LayerTile::kUnits] = {};
  auto* filled = dynamic_shared<float>();
  float* other = filled + tile.numbers();
  stage(0, filled);
  for (std::int64_t first = 0; first < depth; first += LayerTile::kDepth) {
    stage(first + LayerTile::kDepth, other);
    wait_for_copies<1>();
    __syncthreads();
    const float* of_docs = filled + own_doc;
    const float* of_units = filled + LayerTile::kDepth * doc_step + own_unit;
#pragma unroll 4
    for (int k = 0; k < LayerTile::kDepth && works; ++k) {
#pragma unroll
      for (int i = 0; i < LayerTile::kDocs; ++i) {
#pragma unroll
        for (int j = 0; j < LayerTile::kUnits; ++j)
          sum[i][j] += of_docs[k * doc_step + i] * of_units[k * unit_step + j];
      }
    }
    __syncthreads();
    float* next = other;
    other = filled;
    filled = next;
  }
  float* hidden = all_rows.values + member * all_rows.docs * all_rows.stride + output.layer.input;
  for (int i = 0; i < LayerTile::kDocs && works && doc + own_doc + i < all_rows.docs; ++i) {
    for (int j = 0; j < LayerTile::kUnits && unit + own_unit + j < layer.rows; ++j) {
      float value = sum[i][j];
      if (layer.has_bias()) value += theta[layer.bias + unit + own_unit + j];
      hidden[(doc + own_doc + i) * all_rows.stride + unit + own_unit + j] = value > 0.0F ? value : 0.0F;
    }
  }
  if (out.scores == nullptr) return;
  __syncthreads();  // a warp scores documents whose units other warps wrote
  const std::int64_t end = min(all_rows.docs, doc + tile.docs());
  for (std::int64_t i = doc + threadIdx.x / 32; i < end; i += LayerTile::kThreads / 32) {
    write_score(output, theta, hidden + i * all_rows.stride, member * all_rows.docs + i, out);
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

void score(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
           const ScoreArrays& out) {
  const OutputLayer output(stack.shape);
  const bool hidden = stack.shape.depth > 1;
  const Blocks grid{parts_of(rows.docs, kWarpsPerBlock), stack.members};
  launch(kernel<score_kernel, kWarpsPerBlock * 32>, grid, 0, stream, output, stack.theta,
         hidden ? rows.values + output.layer.input : features, hidden ? rows.stride : stack.shape.inputs,
         hidden ? rows.docs * rows.stride : stack.features_step, rows.docs, out);
}

/// The hidden layer by our kernel, which scores too if `out` has arrays and one tile covers all units.
/// Returns whether it does.
bool multiply_layer(Stream stream, const NetworkStack& stack, const float* features, const FactorRows& rows,
                    const ScoreArrays& out) {
  const NetworkLayer layer = stack.shape.layer(0);
  const LayerTile tile(layer.rows);
  const std::int64_t unit_tiles = parts_of(layer.rows, tile.units());
  const bool scores_too = out.scores != nullptr && unit_tiles == 1;
  launch(kernel<forward_layer_kernel, LayerTile::kThreads>,
         {unit_tiles, parts_of(rows.docs, tile.docs()), stack.members},
         2 * sizeof(float) * static_cast<std::size_t>(tile.numbers()), stream, layer, stack.theta, features,
         rows, tile, OutputLayer(stack.shape), scores_too ? out : ScoreArrays{});
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
  shape.a = l == 0 ? MatrixPlaces{0, layer.columns, stack.features_step} : within(rows, layer.input);
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
      scored |= multiply_layer(stream, stack, features, rows, out);
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
    launch_each(kernel<gate_kernel, kGateThreads>, numbers, stack.members, products.stream(), rows,
                above.columns, above.input, stack.shape.layer(l).delta);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
