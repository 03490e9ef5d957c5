#include "cuda/ops/tangent_factors.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
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

/// A range of the factors of the documents from `first` on, converted to double.
struct FactorOperand {
  const float* values;
  std::int64_t stride;
  std::int64_t docs;
  std::int64_t depth;
  std::int64_t first;

  __device__ bool along_depth() const { return true; }
  __device__ void prepare(std::int64_t) {}
  __device__ int rows_within() const { return rows_of_tile(docs, first); }
  __device__ StridedColumn<float> at(std::int64_t k) const {
    return {values + first * stride + k, static_cast<int>(stride), k < depth};
  }
};

// Three tiles at once: their sum, and the two factors of a layer.
using Tile = NarrowDoubleTile;

/// tile.sum = Σ_l (δ_l·δ'_l)(h_{l−1}·h'_{l−1} + 1 with a bias), by all threads of the block.
__device__ void gradient_products(const LayerTable& layers, const FactorRows& left, std::int64_t left_first,
                                  const FactorRows& right, std::int64_t right_first, double* shared,
                                  Tile& tile) {
  const auto multiply = [&](std::int64_t place, std::int64_t depth, Tile& product) {
    FactorOperand a{left.values + place, left.stride, left.docs, depth, left_first};
    FactorOperand b{right.values + place, right.stride, right.docs, depth, right_first};
    multiply_tile(0, depth, a, b, shared, product);
  };
  for (std::int64_t l = 0; l < layers.depth; ++l) {
    const NetworkLayer& layer = layers.layer[l];
    Tile deltas;
    Tile inputs;
    multiply(layer.delta, layer.rows, deltas);
    multiply(layer.input, layer.columns, inputs);
    const double bias = layer.has_bias() ? 1.0 : 0.0;
#pragma unroll
    for (int u = 0; u < Tile::kRowBlocks; ++u) {
#pragma unroll
      for (int v = 0; v < Tile::kColumnBlocks; ++v) {
#pragma unroll
        for (int e = 0; e < Tile::kNumbers; ++e)
          tile.sum[u][v][e] += deltas.sum[u][v][e] * (inputs.sum[u][v][e] + bias);
      }
    }
  }
}

// Grid: tiles [64 × 64] of the lower triangle of documents, then tiles of 32 pairs, that is 64 winners and
// losers, by 64 documents. A block owns a tile. A winner and its loser are neighbouring rows of a tensor
// core's block, 4 lanes apart. Double; deterministic.
__device__ void query_kernels_kernel(const Grid& grid, const LayerTable& layers, const FactorRows& docs,
                                     const FactorRows& pairs, double scale, unsigned doc_tiles,
                                     double* of_docs, double* of_pairs, std::int64_t stride) {
  const bool is_of_docs = grid.block.x < doc_tiles;
  std::int64_t row = 0;
  std::int64_t column = 0;
  if (is_of_docs) {
    lower_tile(grid.block.x, row, column);
  } else {
    const unsigned across = static_cast<unsigned>((docs.docs + Tile::kSide - 1) / Tile::kSide);
    row = std::int64_t{(grid.block.x - doc_tiles) / across} * Tile::kSide;
    column = std::int64_t{(grid.block.x - doc_tiles) % across} * Tile::kSide;
  }
  Tile tile;
  gradient_products(layers, is_of_docs ? docs : pairs, row, docs, column, dynamic_shared<double>(), tile);
  if (is_of_docs) {
    tile.for_each([&](int i, int j, double sum) {
      if (row + i < docs.docs && column + j <= row + i) {
        of_docs[(row + i) * docs.docs + column + j] = scale * sum;
      }
    });
    return;
  }
  tile.for_each([&](int i, int j, double sum) {
    const double other = __shfl_xor_sync(kWholeWarp, sum, 4);
    if (i % 2 != 0 || row + i >= pairs.docs || column + j >= docs.docs) return;
    of_pairs[(row + i) / 2 * stride + column + j] = scale * (sum - other);
  });
}

// Writes the rest of a row after the hidden layers: h_0, δ_{L−1}, δ_L. A warp owns a document; grid.block.y
// is the member.
__device__ void finish_factors_kernel(const Grid& grid, const OutputLayer& output, std::int64_t inputs,
                                      const float* theta, const float* features, const FactorRows& rows) {
  const std::int64_t doc = std::int64_t{grid.block.x} * kWarpsPerBlock + threadIdx.x / 32;
  if (doc >= rows.docs) return;
  const std::int64_t member = grid.block.y;
  float* row = rows.values + (member * rows.docs + doc) * rows.stride;
  const float* own_features = features + doc * inputs;
  for (std::int64_t c = threadIdx.x % 32; c < inputs; c += 32) row[c] = own_features[c];
  write_output_deltas(output, theta + member * output.parameters, 1.0F, row);
}

// A block copies one document's row: grid.block.x alternates between winners and losers.
__device__ void gather_pairs_kernel(const Grid& grid, const FactorRows& rows, const std::int32_t* pairs,
                                    float* to) {
  const std::int64_t number = grid.block.x;
  const float* row = rows.values + std::int64_t{pairs[number]} * rows.stride;
  for (std::int64_t c = threadIdx.x; c < rows.stride; c += blockDim.x) {
    to[number * rows.stride + c] = row[c];
  }
}

}  // namespace

LayerTable::LayerTable(const TangentShape& shape)
    : depth(std::ssize(shape.layers())), parameters(shape.parameters()) {
  const std::span<const NetworkLayer> layers = shape.layers();
  width = layers.front().rows;
  const auto hidden = layers.first(layers.size() - 1);
  if (depth > kMostDeviceLayers || layers.back().rows > width ||
      std::any_of(hidden.begin(), hidden.end(),
                  [&](const NetworkLayer& one) { return one.rows != width; })) {
    throw InvalidArgument("A network on a device has at most " + std::to_string(kMostDeviceLayers) +
                          " layers of parameters, of equal widths: choose others, or device = cpu.");
  }
  std::copy(layers.begin(), layers.end(), layer);
}

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

void query_kernels(Stream stream, const TangentShape& shape, const FactorRows& docs,
                   const FactorRows& pairs, double scale, double* of_docs, double* of_pairs,
                   std::int64_t stride) {
  const auto doc_tiles = of_docs == nullptr ? 0U : static_cast<unsigned>(lower_tiles(docs.docs));
  const unsigned pair_tiles = double_tiles(docs.docs) * double_tiles(pairs.docs);
  launch(kernel<query_kernels_kernel, Tile::kThreads>, {doc_tiles + pair_tiles}, Tile::kSharedBytes, stream,
         LayerTable(shape), docs, pairs, scale, doc_tiles, of_docs, of_pairs, stride);
}

void tangent_factors(Products& products, const NetworkStack& stack, const float* features,
                     const FactorRows& rows, const ScoreArrays& out) {
  if (rows.docs == 0 || stack.members == 0) return;
  forward(products, stack, features, rows, out);
  const Blocks grid{parts_of(rows.docs, kWarpsPerBlock), stack.members};
  launch(kernel<finish_factors_kernel, kWarpsPerBlock * 32>, grid, 0, products.stream(),
         OutputLayer(stack.shape), stack.shape.inputs, stack.theta, features, rows);
  backward_hidden(products, stack, rows);
}

void gather_pairs(Stream stream, const FactorRows& rows, const std::int32_t* pairs, std::int64_t count,
                  float* to) {
  launch(kernel<gather_pairs_kernel, 128>, {2 * count}, 0, stream, rows, pairs, to);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
