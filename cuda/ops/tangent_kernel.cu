#include "cuda/ops/tangent_kernel.h"

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/output_layer.cuh"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

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

}  // namespace

void query_kernels(Stream stream, const TangentShape& shape, const FactorRows& docs,
                   const FactorRows& pairs, double scale, double* of_docs, double* of_pairs,
                   std::int64_t stride) {
  const auto doc_tiles = of_docs == nullptr ? 0U : static_cast<unsigned>(lower_tiles(docs.docs));
  const unsigned pair_tiles = double_tiles(docs.docs) * double_tiles(pairs.docs);
  launch(kernel<query_kernels_kernel, Tile::kThreads>, {doc_tiles + pair_tiles}, Tile::kSharedBytes, stream,
         LayerTable(shape), docs, pairs, scale, doc_tiles, of_docs, of_pairs, stride);
}

namespace {

constexpr unsigned kWarpsPerBlock = 4;

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
