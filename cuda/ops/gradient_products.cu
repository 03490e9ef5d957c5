#include "cuda/ops/gradient_products.h"

#include <algorithm>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/ops/layer_table.h"
#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kWantedBlocks = 264;  // two per multiprocessor of a large device

/// Tiles of 64 units of all layers, one after another.
std::int64_t unit_tiles(const TangentShape& shape) {
  std::int64_t tiles = 0;
  for (const NetworkLayer& layer : shape.layers()) tiles += parts_of(layer.rows, DoubleTile::kSide);
  return tiles;
}

/// A tile of units: its layer and first unit there.
struct UnitTile {
  std::int64_t layer = 0;
  std::int64_t first = 0;

  __device__ UnitTile(const LayerTable& layers, unsigned number) {
    const std::int64_t per_layer = parts_of(layers.width, DoubleTile::kSide);
    layer = min(number / per_layer, layers.depth - 1);
    first = (number - layer * per_layer) * DoubleTile::kSide;
  }
};

/// h_{l−1} of the documents from `first` on, followed by a 1 if the layer has a bias.
struct InputOperand {
  const FactorRows& rows;
  const NetworkLayer& layer;
  std::int64_t first;

  __device__ bool along_depth() const { return true; }
  __device__ void prepare(std::int64_t) {}
  __device__ int rows_within() const { return rows_of_tile(rows.docs, first); }

  struct Column {
    const float* values;
    int step;
    bool is_bias;
    bool inside;

    __device__ double operator()(int i) const {
      const float value = values[place_of_row(i, step)];
      return double{is_bias ? 1.0F : value};
    }
  };
  __device__ Column at(std::int64_t k) const {
    const bool is_bias = k == layer.columns && layer.has_bias();
    return {rows.values + first * rows.stride + layer.input + min(k, layer.columns - 1),
            static_cast<int>(rows.stride), is_bias, is_bias || k < layer.columns};
  }
};

/// Rows of v for the units from `first` on, weights then bias.
struct VectorOperand {
  const double* v;
  const NetworkLayer& layer;
  std::int64_t first;

  __device__ bool along_depth() const { return true; }
  __device__ void prepare(std::int64_t) {}
  __device__ int rows_within() const { return rows_of_tile(layer.rows, first); }
  __device__ StridedColumn<double> at(std::int64_t k) const {
    const bool is_bias = k >= layer.columns;
    return {v + (is_bias ? layer.bias + first : layer.weight + first * layer.columns + k),
            is_bias ? 1 : static_cast<int>(layer.columns), k < layer.columns + (layer.has_bias() ? 1 : 0)};
  }
};

// partial [2 · unit tiles × docs]: Σ over half a tile of units of δ_r (h, 1)·v_r. Grid: tiles of units,
// tiles of documents. A block owns a tile [64 documents × 64 units]; a warp sums over its 32 units: a
// lane's 8 in order, then 4 lanes. Deterministic.
__global__ void __launch_bounds__(DoubleTile::kThreads)
    product_tile_kernel(const __grid_constant__ LayerTable layers, const __grid_constant__ FactorRows rows,
                        const double* v, double* partial, const std::int32_t* skip) {
  if (skip != nullptr && *skip != 0) return;
  const UnitTile units(layers, blockIdx.x);
  const NetworkLayer& layer = layers.layer[units.layer];
  const std::int64_t first_doc = std::int64_t{blockIdx.y} * DoubleTile::kSide;
  InputOperand a{rows, layer, first_doc};
  VectorOperand b{v, layer, units.first};
  DoubleTile tile;
  multiply_tile(0, layer.columns + (layer.has_bias() ? 1 : 0), a, b, dynamic_shared<double>(), tile);
  const std::int64_t half = DoubleTile::column(0, 0) / DoubleTile::kWarpColumns;
#pragma unroll
  for (int u = 0; u < DoubleTile::kRowBlocks; ++u) {
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const std::int64_t doc = first_doc + DoubleTile::row(u, 2 * lower);
      double sum = 0.0;
#pragma unroll
      for (int v_block = 0; v_block < DoubleTile::kColumnBlocks; ++v_block) {
#pragma unroll
        for (int e = 2 * lower; e < 2 * lower + 2; ++e) {
          const std::int64_t unit = units.first + DoubleTile::column(v_block, e);
          if (doc >= rows.docs || unit >= layer.rows) continue;
          sum += double{rows.values[doc * rows.stride + layer.delta + unit]} * tile.sum[u][v_block][e];
        }
      }
      sum += __shfl_xor_sync(kWholeWarp, sum, 1);
      sum += __shfl_xor_sync(kWholeWarp, sum, 2);
      if (threadIdx.x % 4 == 0 && doc < rows.docs) {
        partial[(2 * blockIdx.x + half) * rows.docs + doc] = sum;
      }
    }
  }
}

// A thread owns a number and adds its parts in order.
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(std::int64_t numbers, std::int64_t parts, const double* partial, double* sums,
                     const std::int32_t* skip) {
  if (skip != nullptr && *skip != 0) return;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= numbers) return;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t part = 0; part < parts; ++part) sum += partial[part * numbers + i];
  sums[i] = sum;
}

/// weight · δ_l of units from `first` on, over documents.
struct WeightedDeltaOperand {
  const FactorRows& rows;
  const NetworkLayer& layer;
  const double* weights;
  std::int64_t first;
  std::int64_t end;  // of the documents

  __device__ bool along_depth() const { return false; }
  __device__ void prepare(std::int64_t) {}
  __device__ int rows_within() const { return rows_of_tile(layer.rows, first); }

  struct Column {
    const float* deltas;
    double weight;
    bool inside;

    __device__ double operator()(int i) const { return weight * double{deltas[i]}; }
  };
  __device__ Column at(std::int64_t doc) const {
    const bool inside = doc < end;
    return {rows.values + doc * rows.stride + layer.delta + first, inside ? weights[doc] : 0.0, inside};
  }
};

/// (h_{l−1}, 1) from column `first` on, over documents.
struct InputColumnOperand {
  const FactorRows& rows;
  const NetworkLayer& layer;
  std::int64_t first;
  std::int64_t end;

  __device__ bool along_depth() const { return false; }
  __device__ void prepare(std::int64_t) {}
  __device__ int rows_within() const {
    return rows_of_tile(layer.columns + (layer.has_bias() ? 1 : 0), first);
  }

  struct Column {
    const float* inputs;  // of the document
    int first;
    int count;  // the bias follows them
    bool inside;

    __device__ double operator()(int i) const {
      const float value = inputs[min(first + i, count - 1)];
      return double{first + i < count ? value : 1.0F};
    }
  };
  __device__ Column at(std::int64_t doc) const {
    return {rows.values + doc * rows.stride + layer.input, static_cast<int>(first),
            static_cast<int>(layer.columns), doc < end};
  }
};

// partial [parts × p]: Σ weights δ ⊗ (h, 1) over a part of the documents, in order. Grid: tiles of units,
// tiles of columns, parts. A block owns a tile [64 units × 64 columns].
__global__ void __launch_bounds__(DoubleTile::kThreads)
    sum_tile_kernel(const __grid_constant__ LayerTable layers, const __grid_constant__ FactorRows rows,
                    const double* weights, std::int64_t docs_per_part, double* partial,
                    const std::int32_t* skip) {
  if (skip != nullptr && *skip != 0) return;
  const UnitTile units(layers, blockIdx.x);
  const NetworkLayer& layer = layers.layer[units.layer];
  const std::int64_t columns = layer.columns + (layer.has_bias() ? 1 : 0);
  const std::int64_t column = std::int64_t{blockIdx.y} * DoubleTile::kSide;
  if (column >= columns) return;
  const std::int64_t begin = std::int64_t{blockIdx.z} * docs_per_part;
  const std::int64_t end = min(rows.docs, begin + docs_per_part);
  WeightedDeltaOperand a{rows, layer, weights, units.first, end};
  InputColumnOperand b{rows, layer, column, end};
  DoubleTile tile;
  multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
  double* out = partial + std::int64_t{blockIdx.z} * layers.parameters;
  tile.for_each([&](int i, int j, double sum) {
    const std::int64_t unit = units.first + i;
    const std::int64_t place = column + j;
    if (unit >= layer.rows || place >= columns) return;
    out[place < layer.columns ? layer.weight + unit * layer.columns + place : layer.bias + unit] = sum;
  });
}

struct SumParts {
  std::int64_t column_tiles;
  std::int64_t docs_per_part;
  std::int64_t parts;
};

SumParts sum_parts(const TangentShape& shape, std::int64_t docs) {
  std::int64_t widest = 0;
  for (const NetworkLayer& layer : shape.layers()) widest = std::max(widest, layer.unit_parameters());
  SumParts cut{};
  cut.column_tiles = parts_of(widest, DoubleTile::kSide);
  const std::int64_t wanted =
      std::max<std::int64_t>(1, kWantedBlocks / (unit_tiles(shape) * cut.column_tiles));
  cut.docs_per_part =
      std::max<std::int64_t>(64, parts_of(parts_of(docs, wanted), DoubleTile::kDepth) * DoubleTile::kDepth);
  cut.parts = parts_of(docs, cut.docs_per_part);
  return cut;
}

void add_parts(Stream stream, std::int64_t numbers, std::int64_t parts, const double* partial, double* sums,
               const std::int32_t* skip) {
  launch_each<kThreads>(add_parts_kernel, numbers, 1, stream, numbers, parts, partial, sums, skip);
}

}  // namespace

std::int64_t gradient_products_workspace(const TangentShape& shape, std::int64_t docs) {
  return 2 * unit_tiles(shape) * docs;
}

std::int64_t gradient_sum_workspace(const TangentShape& shape, std::int64_t docs) {
  return sum_parts(shape, docs).parts * shape.parameters();
}

void gradient_products(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* v,
                       double* workspace, double* products, const std::int32_t* skip) {
  if (rows.docs == 0) return;
  const std::int64_t tiles = unit_tiles(shape);
  launch(product_tile_kernel, dim3{count_of(tiles), double_tiles(rows.docs)}, dim3{DoubleTile::kThreads},
         DoubleTile::kSharedBytes, stream, LayerTable(shape), rows, v, workspace, skip);
  add_parts(stream, rows.docs, 2 * tiles, workspace, products, skip);
}

void gradient_sum(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* weights,
                  double* workspace, double* sum, const std::int32_t* skip) {
  const SumParts cut = sum_parts(shape, rows.docs);
  if (cut.parts > 0) {
    const dim3 grid{count_of(unit_tiles(shape)), count_of(cut.column_tiles), count_of(cut.parts)};
    launch(sum_tile_kernel, grid, dim3{DoubleTile::kThreads}, DoubleTile::kSharedBytes, stream,
           LayerTable(shape), rows, weights, cut.docs_per_part, workspace, skip);
  }
  add_parts(stream, shape.parameters(), cut.parts, workspace, sum, skip);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
