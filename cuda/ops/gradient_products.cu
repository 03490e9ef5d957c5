#include "cuda/ops/gradient_products.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

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

// partial [columns × 2 · unit tiles × docs]: Σ over half a tile of units of δ_r (h, 1)·v_r. Grid: tiles of
// units, tiles of documents, columns. A block owns a tile [64 documents × 64 units]; a warp sums over its
// 32 units: a lane's 8 in order, then 4 lanes. Deterministic.
__device__ void product_tile_kernel(const Grid& grid, const LayerTable& layers, const FactorRows& rows,
                                    const double* v, double* partial, const std::int32_t* skip) {
  if (skip != nullptr && *skip != 0) return;
  const UnitTile units(layers, grid.block.x);
  const NetworkLayer& layer = layers.layer[units.layer];
  const std::int64_t first_doc = std::int64_t{grid.block.y} * DoubleTile::kSide;
  InputOperand a{rows, layer, first_doc};
  VectorOperand b{v + grid.block.z * layers.parameters, layer, units.first};
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
        partial[(2 * (std::int64_t{grid.block.z} * grid.extent.x + grid.block.x) + half) * rows.docs +
                doc] = sum;
      }
    }
  }
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

// partial [vectors × parts × p]: Σ weights δ ⊗ (h, 1) over a part of the documents, in order. Grid: tiles
// of units, tiles of columns, parts of each vector of weights. A block owns a tile [64 units × 64 columns].
__device__ void sum_tile_kernel(const Grid& grid, const LayerTable& layers, const FactorRows& rows,
                                const double* weights, std::int64_t docs_per_part, std::int64_t parts,
                                double* partial, const std::int32_t* skip) {
  if (skip != nullptr && *skip != 0) return;
  const UnitTile units(layers, grid.block.x);
  const NetworkLayer& layer = layers.layer[units.layer];
  const std::int64_t columns = layer.columns + (layer.has_bias() ? 1 : 0);
  const std::int64_t column = std::int64_t{grid.block.y} * DoubleTile::kSide;
  if (column >= columns) return;
  const std::int64_t begin = grid.block.z % parts * docs_per_part;
  const std::int64_t end = min(rows.docs, begin + docs_per_part);
  WeightedDeltaOperand a{rows, layer, weights + grid.block.z / parts * rows.docs, units.first, end};
  InputColumnOperand b{rows, layer, column, end};
  DoubleTile tile;
  multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
  double* out = partial + std::int64_t{grid.block.z} * layers.parameters;
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

SumParts sum_parts(const TangentShape& shape, std::int64_t docs, std::int64_t columns) {
  std::int64_t widest = 0;
  for (const NetworkLayer& layer : shape.layers()) widest = std::max(widest, layer.unit_parameters());
  SumParts cut{};
  cut.column_tiles = parts_of(widest, DoubleTile::kSide);
  const std::int64_t wanted =
      std::max<std::int64_t>(1, kWantedBlocks / (columns * unit_tiles(shape) * cut.column_tiles));
  cut.docs_per_part =
      std::max<std::int64_t>(64, parts_of(parts_of(docs, wanted), DoubleTile::kDepth) * DoubleTile::kDepth);
  cut.parts = parts_of(docs, cut.docs_per_part);
  return cut;
}

constexpr std::int64_t kDocsPerBlock = kThreads / 32;
constexpr unsigned kNormThreads = 1024;

// v ← v/‖v‖. A thread owns a number.
__device__ void normalise_kernel(const Grid& grid, std::int64_t parameters, double* vector,
                                 const CurvatureState* state) {
  if (state->settled != 0) return;
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k < parameters) vector[k] /= state->norm;
}

// weights [docs] of Σ w g gᵀ v, and partial sums of the Rayleigh quotient. A warp owns a document, whose
// terms are split over the lanes in order; a term is counted in the quotient of its first document.
// Deterministic.
__device__ void curvature_weights_kernel(const Grid& grid, std::int64_t docs, const PairTerm* terms,
                                         const PairIncidence& incidence, const double* products,
                                         double* weights, double* quotients, const CurvatureState* state) {
  if (state->settled != 0) return;
  const std::int64_t doc = std::int64_t{grid.block.x} * kDocsPerBlock + threadIdx.x / 32;
  double weight = 0.0;
  double quotient = 0.0;
  if (doc < docs) {
    const std::int32_t stop = incidence.offsets[doc + 1];
    for (std::int32_t i = incidence.offsets[doc] + static_cast<std::int32_t>(threadIdx.x % 32); i < stop;
         i += 32) {
      const std::int32_t end = incidence.ends[i];
      const PairTerm& term = terms[end / 2];
      const double product = products[term.first] - products[term.second];
      const double weighted = term.weight * product;
      weight += end % 2 == 0 ? weighted : -weighted;
      if (end % 2 == 0) quotient += weighted * product;
    }
    weight = warp_sum(weight);
    if (threadIdx.x % 32 == 0) weights[doc] = weight;
  }
  const double sum = block_sum(quotient, dynamic_shared<double>());
  if (threadIdx.x == 0) quotients[grid.block.x] = sum;
}

// Updates the estimate and decides whether it has settled. One block.
__device__ void settle_kernel(const Grid& /*grid*/, std::int64_t parts, const double* quotients,
                              double tolerance, CurvatureState* state) {
  if (state->settled != 0) return;
  double quotient = 0.0;
  for (std::int64_t i = threadIdx.x; i < parts; i += kThreads) quotient += quotients[i];
  quotient = block_sum(quotient, dynamic_shared<double>());
  if (threadIdx.x != 0) return;
  const bool settled = has_settled(state->iterations, quotient, state->estimate, tolerance);
  state->estimate = quotient > state->estimate ? quotient : state->estimate;
  ++state->iterations;
  if (settled) state->settled = 1;
}

// One block. A zero vector ends the iteration, or with `fresh` is replaced by that: gradients that were all
// equal leave one, and it would stay zero.
__device__ void norm_kernel(const Grid& /*grid*/, std::int64_t parameters, const double* fresh,
                            double* vector, CurvatureState* state) {
  if (state->settled != 0) return;
  double own = 0.0;
#pragma unroll 8
  for (std::int64_t k = threadIdx.x; k < parameters; k += kNormThreads) own += vector[k] * vector[k];
  const double norm = std::sqrt(combined(own, dynamic_shared<double>(), Sum{}));
  const bool restarts = fresh != nullptr && !(norm > 0.0);
  for (std::int64_t k = threadIdx.x; k < parameters && restarts; k += kNormThreads) vector[k] = fresh[k];
  if (threadIdx.x != 0) return;
  state->norm = restarts ? 1.0 : norm;
  if (!(state->norm > 0.0)) state->settled = 1;
}

__device__ void curvature_step_kernel(const Grid& /*grid*/, const CurvatureState* state, double growth,
                                      double rate, double prior, double* step) {
  if (threadIdx.x == 0) *step = stable_step(rate, growth * curvature_of(state->estimate), prior);
}

/// The workspace of an iteration.
struct Work {
  double* products;
  double* weights;
  double* quotients;
  double* sums;

  Work(const CurvatureTask& task, double* workspace)
      : products(workspace),
        weights(products + task.rows.docs),
        quotients(weights + task.rows.docs),
        sums(quotients + parts_of(task.rows.docs, kDocsPerBlock)) {}
};

void measure(Stream stream, const CurvatureTask& task, const double* fresh, double* vector,
             CurvatureState* state) {
  launch(kernel<norm_kernel, kNormThreads>, {1}, kNormThreads / 32 * sizeof(double), stream,
         task.shape.parameters(), fresh, vector, state);
}

}  // namespace

std::int64_t gradient_products_workspace(const TangentShape& shape, std::int64_t docs,
                                         std::int64_t columns) {
  return columns * 2 * unit_tiles(shape) * docs;
}

std::int64_t gradient_sum_workspace(const TangentShape& shape, std::int64_t docs, std::int64_t columns) {
  return columns == 0 ? 0 : columns * sum_parts(shape, docs, columns).parts * shape.parameters();
}

void gradient_products(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* v,
                       double* workspace, double* products, const std::int32_t* skip,
                       std::int64_t columns) {
  const std::int64_t tiles = unit_tiles(shape);
  launch(kernel<product_tile_kernel, DoubleTile::kThreads>, {tiles, double_tiles(rows.docs), columns},
         DoubleTile::kSharedBytes, stream, LayerTable(shape), rows, v, workspace, skip);
  add_parts(stream, rows.docs, columns, 2 * tiles, workspace, products, skip);
}

void gradient_sum(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* weights,
                  double* workspace, double* sum, const std::int32_t* skip, std::int64_t columns) {
  if (columns == 0) return;
  const SumParts cut = sum_parts(shape, rows.docs, columns);
  launch(kernel<sum_tile_kernel, DoubleTile::kThreads>,
         {unit_tiles(shape), cut.column_tiles, cut.parts * columns}, DoubleTile::kSharedBytes, stream,
         LayerTable(shape), rows, weights, cut.docs_per_part, cut.parts, workspace, skip);
  add_parts(stream, shape.parameters(), columns, cut.parts, workspace, sum, skip);
}

std::int64_t curvature_workspace(const TangentShape& shape, std::int64_t docs) {
  return 2 * docs + parts_of(docs, kDocsPerBlock) +
         std::max(gradient_products_workspace(shape, docs), gradient_sum_workspace(shape, docs));
}

void begin_curvature(Stream stream, const CurvatureTask& task, double* vector, CurvatureState* state) {
  fill_bytes(stream, state, 0, sizeof *state);
  measure(stream, task, task.fresh, vector, state);
}

void iterate_curvature(Stream stream, const CurvatureTask& task, double* vector, double* workspace,
                       CurvatureState* state) {
  if (task.rows.docs == 0 || task.count == 0) return;
  const Work work(task, workspace);
  const std::int64_t p = task.shape.parameters();
  const std::int64_t docs = task.rows.docs;
  const std::int64_t blocks = parts_of(docs, kDocsPerBlock);
  constexpr std::size_t kShared = kThreads / 32 * sizeof(double);
  const std::int32_t* settled = &state->settled;
  launch_each(kernel<normalise_kernel, kThreads>, p, 1, stream, p, vector, state);
  gradient_products(stream, task.shape, task.rows, vector, work.sums, work.products, settled);
  launch(kernel<curvature_weights_kernel, kThreads>, {blocks}, kShared, stream, docs, task.terms,
         task.incidence, work.products, work.weights, work.quotients, state);
  launch(kernel<settle_kernel, kThreads>, {1}, kShared, stream, blocks, work.quotients, task.tolerance,
         state);
  gradient_sum(stream, task.shape, task.rows, work.weights, work.sums, vector, settled);
  measure(stream, task, nullptr, vector, state);
}

void step_from_curvature(Stream stream, const CurvatureState* state, double growth, double rate,
                         double prior, double* step) {
  launch(kernel<curvature_step_kernel, 32>, {1}, 0, stream, state, growth, rate, prior, step);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
