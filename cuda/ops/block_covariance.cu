#include "cuda/ops/block_covariance.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/live_units.cuh"
#include "cuda/ops/partial_sums.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kSide = DoubleTile::kSide;

unsigned parts_of(std::int64_t n, std::int64_t part) {
  return static_cast<unsigned>((n + part - 1) / part);
}
unsigned count_of(std::int64_t n) {
  return static_cast<unsigned>(n);
}

// Grid: blocks, rows; a thread owns every 256th number of a row.
__global__ void __launch_bounds__(kThreads)
    reset_roots_kernel(const __grid_constant__ BlockTable blocks, double value, double* roots) {
  const BlockTable::Block block = blocks.block(blockIdx.x);
  const std::int64_t row = blockIdx.y;
  if (row >= block.size) return;
  for (std::int64_t k = threadIdx.x; k < block.size; k += kThreads)
    roots[block.number + row * block.size + k] = k == row ? value : 0.0;
}

/// Documents for which a unit is active, in shared memory behind a DoubleTile's.
class ActiveDocs {
 public:
  static std::size_t shared_bytes(std::int64_t docs) {
    return DoubleTile::kSharedBytes + (kSide + parts_of(docs, 32)) * sizeof(std::uint32_t);
  }

  /// Finds them; `first` is the first that a tile takes, counted among the active ones. All threads of the
  /// block call it.
  __device__ ActiveDocs(const FactorRows& rows, std::int64_t delta, std::int64_t first)
      : docs_(reinterpret_cast<int*>(dynamic_shared<double>() + DoubleTile::kSharedBytes / sizeof(double))),
        masks_(reinterpret_cast<std::uint32_t*>(docs_ + kSide)) {
    const std::int64_t words = (rows.docs + 31) / 32;
    for (std::int64_t word = threadIdx.x / 32; word < words; word += DoubleTile::kThreads / 32) {
      const std::int64_t doc = 32 * word + threadIdx.x % 32;
      const bool active = doc < rows.docs && rows.values[doc * rows.stride + delta] != 0.0F;
      const std::uint32_t mask = __ballot_sync(kWholeWarp, active);
      if (threadIdx.x % 32 == 0) masks_[word] = mask;
    }
    __syncthreads();
    const std::int64_t own = first + threadIdx.x;  // the thread's document
    std::int64_t before = 0;
    for (std::int64_t word = 0; word < words; ++word) {
      const std::int64_t here = __popc(masks_[word]);
      if (threadIdx.x < kSide && own >= before && own < before + here) {
        std::uint32_t mask = masks_[word];
        for (std::int64_t skipped = before; skipped < own; ++skipped) mask &= mask - 1;
        docs_[threadIdx.x] = static_cast<int>(32 * word) + __ffs(static_cast<int>(mask)) - 1;
      }
      before += here;
    }
    count_ = static_cast<int>(max(std::int64_t{0}, min(before - first, kSide)));
    __syncthreads();
  }

  __device__ bool contains(std::int64_t doc) const { return (masks_[doc / 32] >> doc % 32 & 1U) != 0; }
  /// The tile's.
  __device__ int count() const { return count_; }
  __device__ int doc(int i) const { return docs_[i]; }

 private:
  int* docs_;
  std::uint32_t* masks_;  // a bit per document
  int count_ = 0;
};

/// (h, 1) of a tile's documents.
struct ActiveInputs {
  const ActiveDocs& docs;
  const FactorRows& rows;
  const NetworkLayer& layer;

  __device__ void prepare(std::int64_t) {}
  __device__ bool along_depth() const { return true; }
  __device__ int rows_within() const { return docs.count(); }

  struct Column {
    const ActiveDocs& docs;
    const float* inputs;  // may be read for a bias too
    std::int64_t stride;
    bool is_bias;
    bool inside;

    __device__ double operator()(int i) const {
      const float input = inputs[docs.doc(i) * stride];
      return double{is_bias ? 1.0F : input};
    }
  };
  __device__ Column at(std::int64_t k) const {
    return {docs, rows.values + layer.input + min(k, layer.columns - 1), rows.stride, k >= layer.columns,
            k < layer.unit_parameters()};
  }
};

// Grid: blocks, tiles of documents times tiles of rows of S. A thread block owns a tile [64 × 64] of a
// unit's w: of the documents for which the unit is active, without gaps, and the zeros of the others among
// 64 documents. k in order; double; deterministic.
__global__ void __launch_bounds__(DoubleTile::kThreads)
    block_rows_kernel(const __grid_constant__ BlockTable blocks, const __grid_constant__ FactorRows rows,
                      const double* roots, double* w) {
  const BlockTable::Block block = blocks.block(blockIdx.x);
  const std::int64_t tiles = (blocks.largest + kSide - 1) / kSide;
  const std::int64_t first_doc = blockIdx.y / tiles * kSide;
  const std::int64_t first_column = blockIdx.y % tiles * kSide;
  if (first_column >= block.size) return;
  double* own = w + rows.docs * block.first;
  const ActiveDocs active(rows, block.delta(), first_doc);
  for (std::int64_t at = threadIdx.x; at < kSide * kSide; at += DoubleTile::kThreads) {
    const std::int64_t doc = first_doc + at / kSide;
    const std::int64_t column = first_column + at % kSide;
    if (doc < rows.docs && column < block.size && !active.contains(doc))
      own[doc * block.size + column] = 0.0;
  }
  if (active.count() == 0) return;
  ActiveInputs a{active, rows, *block.layer};
  DoubleOperand<true> b{roots + block.number, block.size, block.size, block.size, first_column};
  DoubleTile tile;
  multiply_tile(0, block.size, a, b, dynamic_shared<double>(), tile);
  tile.for_each([&](int i, int j, double sum) {
    if (i >= active.count() || first_column + j >= block.size) return;
    const std::int64_t doc = active.doc(i);
    own[doc * block.size + first_column + j] = sum * double{rows.values[doc * rows.stride + block.delta()]};
  });
}

/// A tile's operand: w of the documents from `first` on, unit by unit of a list.
struct RowsOfUnits {
  UnitWalk walk;
  const BlockTable& blocks;
  const double* w;
  std::int64_t docs;
  std::int64_t first;

  const double* own = nullptr;
  std::int64_t size = 0;

  __device__ bool along_depth() const { return true; }
  __device__ void prepare(std::int64_t k) {
    if (!walk.advance(k)) return;
    const BlockTable::Block block = blocks.block(walk.unit() - blocks.first_unit);
    size = block.size;
    own = w + docs * block.first + first * size;
  }
  __device__ int rows_within() const { return rows_of_tile(docs, first); }
  __device__ StridedColumn<double> at(std::int64_t k) const {
    const std::int64_t column = k - walk.begin;
    return {own + column, static_cast<int>(size), column < size};
  }
};

// parts [parts × docs × docs]: the sum over a part's units, tiles of the lower triangle. Grid: tiles,
// parts. A thread block owns a tile [64 × 64]; k runs unit by unit, in order; double. Deterministic.
__global__ void __launch_bounds__(DoubleTile::kThreads)
    block_gram_kernel(const __grid_constant__ BlockTable blocks, const __grid_constant__ FactorRows rows,
                      const double* w, double scale, std::int64_t units_of_part, double* parts) {
  double* tiles = dynamic_shared<double>();
  std::int64_t row = 0;
  std::int64_t column = 0;
  lower_tile(blockIdx.x, row, column);
  const LayerTable& layers = blocks.layers;
  const std::int64_t first_unit = blocks.first_unit + std::int64_t{blockIdx.y} * units_of_part;
  const LiveUnits live(layers, rows, first_unit, min(first_unit + units_of_part, layers.units()), row,
                       column);
  const std::int64_t depth = live.depth(layers);
  RowsOfUnits a{{layers, live.list()}, blocks, w, rows.docs, row};
  DoubleTile tile;
  if (row == column) {
    multiply_by_itself(0, depth, a, tiles, tile);
  } else {
    RowsOfUnits b{{layers, live.list()}, blocks, w, rows.docs, column};
    multiply_tile(0, depth, a, b, tiles, tile);
  }
  double* out = parts + std::int64_t{blockIdx.y} * rows.docs * rows.docs;
  tile.for_each([&](int i, int j, double sum) {
    const std::int64_t doc = row + i;
    const std::int64_t other = column + j;
    if (doc < rows.docs && other <= doc) out[doc * rows.docs + other] = scale * sum;
  });
}

/// The pairs of an update, at most 32.
struct NewPairs {
  FactorRows rows;
  const PreferencePair* pairs;
  std::int64_t count;
  double root_scale;

  /// Whether a unit is active for a document of a pair. All lanes of a warp call it and get the answer.
  __device__ bool see(std::int64_t delta) const {
    const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
    bool seen = false;
    if (lane < count) seen = winner(lane)[delta] != 0.0F || loser(lane)[delta] != 0.0F;
    return __any_sync(kWholeWarp, seen) != 0;
  }
  /// Γ, √scale (g_winner − g_loser), of a block's k-th parameter.
  __device__ double gradient(const BlockTable::Block& block, std::int64_t pair, std::int64_t k) const {
    return root_scale * (block.gradient(winner(pair), k) - block.gradient(loser(pair), k));
  }
  __device__ const float* winner(std::int64_t pair) const {
    return rows.values + pairs[pair].winner * rows.stride;
  }
  __device__ const float* loser(std::int64_t pair) const {
    return rows.values + pairs[pair].loser * rows.stride;
  }
};

/// r [count × count] ← R, upper, with RᵀR = I + UᵀU and a positive diagonal, by Householder reflections of
/// (I; U), so that U is not squared. vectors [count × size] holds the columns of U and is overwritten; dots
/// [count] is shared. All threads of the block call it. Returns, to all, whether all numbers are finite.
__device__ bool reflect_pairs(std::int64_t count, std::int64_t size, double* vectors, double* dots,
                              double* r) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  for (std::int64_t j = 0; j < count; ++j) {
    const double* own = vectors + j * size;
    for (std::int64_t c = j + threadIdx.x / 32; c < count; c += kThreads / 32) {
      double sum = 0.0;
      for (std::int64_t k = lane; k < size; k += 32) sum += own[k] * vectors[c * size + k];
      sum = warp_sum(sum);
      if (lane == 0) dots[c] = sum;
    }
    __syncthreads();
    const double square = dots[j];
    const double root = std::sqrt(1.0 + square);
    if (!std::isfinite(root)) return false;
    for (std::int64_t c = j + threadIdx.x; c < count; c += kThreads)
      r[j * count + c] = c == j ? root : dots[c] / root;
    if (square > 0.0) {
      const double share = (1.0 + root) / (root * square);
      for (std::int64_t c = j + 1; c < count; ++c) {
        for (std::int64_t k = threadIdx.x; k < size; k += kThreads)
          vectors[c * size + k] -= dots[c] * share * own[k];
      }
    }
    __syncthreads();
  }
  return true;
}

// For each block: columns [count × size], Uᵀ; shares [count × size], L⁻ᵀ(L + I)⁻¹Uᵀ; the log det of L Lᵀ;
// and the pairs added to the probes. Grid: blocks. Threads own numbers, warps inner products, then threads
// columns. Sums in a fixed order, in double.
__global__ void __launch_bounds__(kThreads)
    reflect_pairs_kernel(const __grid_constant__ BlockTable blocks, const __grid_constant__ NewPairs added,
                         const double* w, double* columns, double* shares, double* log_dets,
                         const __grid_constant__ BlockProbes probes, CovarianceStatus* status) {
  const std::int64_t count = added.count;
  auto* r = dynamic_shared<double>();  // [count × count]
  double* dots = r + count * count;    // [max(count, probes · count)]
  const BlockTable::Block block = blocks.block(blockIdx.x);
  if (!added.see(block.delta())) {
    if (threadIdx.x == 0) log_dets[blockIdx.x] = 0.0;
    return;
  }
  const std::int64_t size = block.size;
  const double* own = w + added.rows.docs * block.first;
  double* u = columns + count * block.first;
  double* q = shares + count * block.first;
  for (std::int64_t s = 0; s < count; ++s) {
    const double* winner = own + added.pairs[s].winner * size;
    const double* loser = own + added.pairs[s].loser * size;
    for (std::int64_t k = threadIdx.x; k < size; k += kThreads)
      u[s * size + k] = q[s * size + k] = added.root_scale * (winner[k] - loser[k]);
  }
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  for (std::int64_t probe = 0; probe < probes.count; ++probe) {
    const double* direction = probes.directions + probe * blocks.parameters + block.first;
    for (std::int64_t s = threadIdx.x / 32; s < count; s += kThreads / 32) {
      double sum = 0.0;
      for (std::int64_t k = lane; k < size; k += 32) sum += added.gradient(block, s, k) * direction[k];
      sum = warp_sum(sum);
      if (lane == 0) dots[probe * count + s] = sum;
    }
  }
  __syncthreads();
  for (std::int64_t probe = 0; probe < probes.count; ++probe) {
    const double* along = dots + probe * count;
    double* product = probes.products + probe * blocks.parameters + block.first;
    for (std::int64_t k = threadIdx.x; k < size; k += kThreads) {
      for (std::int64_t s = 0; s < count; ++s) product[k] += along[s] * added.gradient(block, s, k);
    }
    double* energy = probes.energies + probe * blocks.count() + blockIdx.x;
    if (threadIdx.x == 0) {
      for (std::int64_t s = 0; s < count; ++s) *energy += along[s] * along[s];
    }
  }
  __syncthreads();
  if (!reflect_pairs(count, size, q, dots, r)) {
    if (threadIdx.x == 0) status->failed = 1;
    return;
  }
  // L is R transposed.
  for (std::int64_t k = threadIdx.x; k < size; k += kThreads) {
    for (std::int64_t i = 0; i < count; ++i) {
      double value = u[i * size + k];
      for (std::int64_t j = 0; j < i; ++j) value -= r[j * count + i] * q[j * size + k];
      q[i * size + k] = value / (r[i * (count + 1)] + 1.0);
    }
    for (std::int64_t i = count - 1; i >= 0; --i) {
      double value = q[i * size + k];
      for (std::int64_t j = i + 1; j < count; ++j) value -= r[i * count + j] * q[j * size + k];
      q[i * size + k] = value / r[i * (count + 1)];
    }
  }
  if (threadIdx.x != 0) return;
  double log_det = 0.0;
  for (std::int64_t i = 0; i < count; ++i) log_det += 2.0 * std::log(r[i * (count + 1)]);
  log_dets[blockIdx.x] = log_det;
}

/// How a thread block updates 32 columns of a root: 8 threads share a column, and sums for 8 pairs at a
/// time are in registers.
struct RootStrip {
  static constexpr int kColumns = 32;
  static constexpr int kLanes = static_cast<int>(kThreads) / kColumns;
  static constexpr int kPairs = 8;
  static constexpr std::size_t kSharedBytes =
      (kMostPairsOfBlocks + kPairs * kLanes) * kColumns * sizeof(double);
};

// S ← S − QUᵀS, with Qᵀ = shares and Uᵀ = columns, unless a block has failed; log det += Σ log_dets. Grid:
// blocks, strips of 32 columns. Sums in a fixed order, in double.
__global__ void __launch_bounds__(kThreads)
    update_roots_kernel(const __grid_constant__ BlockTable blocks, const __grid_constant__ NewPairs added,
                        const double* columns, const double* shares, const double* log_dets, double* roots,
                        CovarianceStatus* status) {
  constexpr int kPairs = RootStrip::kPairs;
  if (status->failed != 0) return;
  auto* products = dynamic_shared<double>();                              // UᵀS, [pairs × 32]
  double* partial = products + kMostPairsOfBlocks * RootStrip::kColumns;  // [kPairs × lanes × 32]
  if (blockIdx.x == 0 && blockIdx.y == 0) {
    double sum = 0.0;
    for (std::int64_t u = threadIdx.x; u < blocks.count(); u += kThreads) sum += log_dets[u];
    sum = block_sum(sum, products);
    if (threadIdx.x == 0) status->log_det += sum;
    __syncthreads();
  }
  const BlockTable::Block block = blocks.block(blockIdx.x);
  const int near = static_cast<int>(threadIdx.x) % RootStrip::kColumns;
  const int lane = static_cast<int>(threadIdx.x) / RootStrip::kColumns;
  const std::int64_t size = block.size;
  const std::int64_t first = std::int64_t{blockIdx.y} * RootStrip::kColumns;
  if (first >= size || !added.see(block.delta())) return;
  const std::int64_t column = min(first + near, size - 1);  // beyond the root: repeated and not written
  const double* u = columns + added.count * block.first;
  const double* q = shares + added.count * block.first;
  double* root = roots + block.number + column;
  for (std::int64_t begin = 0; begin < added.count; begin += kPairs) {
    const int here = static_cast<int>(min(added.count - begin, std::int64_t{kPairs}));
    double sum[kPairs] = {};
    for (std::int64_t row = lane; row < size; row += RootStrip::kLanes) {
      const double number = root[row * size];
#pragma unroll
      for (int i = 0; i < kPairs; ++i)
        if (i < here) sum[i] += u[(begin + i) * size + row] * number;
    }
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      partial[(i * RootStrip::kLanes + lane) * RootStrip::kColumns + near] = sum[i];
    __syncthreads();
    if (lane < here) {
      double all = 0.0;
      for (int other = 0; other < RootStrip::kLanes; ++other)
        all += partial[(lane * RootStrip::kLanes + other) * RootStrip::kColumns + near];
      products[(begin + lane) * RootStrip::kColumns + near] = all;
    }
    __syncthreads();
  }
  if (first + near >= size) return;
  for (std::int64_t row = lane; row < size; row += RootStrip::kLanes) {
    double number = root[row * size];
    for (std::int64_t i = 0; i < added.count; ++i)
      number -= q[i * size + row] * products[i * RootStrip::kColumns + near];
    root[row * size] = number;
  }
}

// Grid: blocks, probes. A warp owns rows; the thread block adds the squares. Sums in a fixed order.
__global__ void __launch_bounds__(kThreads)
    block_energies_kernel(const __grid_constant__ BlockTable blocks, const double* roots,
                          const __grid_constant__ BlockProbes probes, double* found) {
  const BlockTable::Block block = blocks.block(blockIdx.x);
  const double* product = probes.products + blockIdx.y * blocks.parameters + block.first;
  double energy = 0.0;
  for (std::int64_t row = threadIdx.x / 32; row < block.size; row += kThreads / 32) {
    double sum = 0.0;
    for (std::int64_t k = threadIdx.x % 32; k < block.size; k += 32)
      sum += roots[block.number + row * block.size + k] * product[k];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) energy += sum * sum;
  }
  energy = block_sum(energy, dynamic_shared<double>());
  if (threadIdx.x == 0) found[blockIdx.y * blocks.count() + blockIdx.x] = energy;
}

}  // namespace

BlockTable::BlockTable(const TangentShape& shape, std::int64_t first_layer)
    : layers(shape), first_unit(first_layer * layers.width) {
  for (std::int64_t l = first_layer; l < layers.depth; ++l) {
    const std::int64_t size = layers.layer[l].unit_parameters();
    const std::int64_t units = layers.layer[l].rows;
    first_parameter[l] = parameters;
    first_number[l] = numbers;
    largest = std::max(largest, size);
    parameters += units * size;
    numbers += units * size * size;
  }
}

void reset_block_roots(Stream stream, const BlockTable& blocks, double value, double* roots) {
  launch(reset_roots_kernel, dim3{count_of(blocks.count()), count_of(blocks.largest)}, dim3{kThreads}, 0,
         stream, blocks, value, roots);
}

void block_rows(Stream stream, const BlockTable& blocks, const FactorRows& rows, const double* roots,
                double* w) {
  if (rows.docs == 0) return;
  const dim3 grid{count_of(blocks.count()), double_tiles(rows.docs) * double_tiles(blocks.largest)};
  launch(block_rows_kernel, grid, dim3{DoubleTile::kThreads}, ActiveDocs::shared_bytes(rows.docs), stream,
         blocks, rows, roots, w);
}

std::int64_t block_gram_workspace(const BlockTable& blocks, std::int64_t docs) {
  return docs == 0 ? 0 : UnitParts(blocks.count(), docs).count * docs * docs;
}

void block_gram(Stream stream, const BlockTable& blocks, const FactorRows& rows, const double* w,
                double scale, double* workspace, double* m) {
  if (rows.docs == 0) return;
  const UnitParts parts(blocks.count(), rows.docs);
  launch(block_gram_kernel, dim3{count_of(lower_tiles(rows.docs)), count_of(parts.count)},
         dim3{DoubleTile::kThreads}, LiveUnits::kSharedBytes, stream, blocks, rows, w, scale, parts.units,
         workspace);
  sum_lower_parts(stream, rows.docs, parts.count, workspace, m);
}

std::int64_t update_block_roots_workspace(const BlockTable& blocks, std::int64_t pairs) {
  return 2 * pairs * blocks.parameters + blocks.count();
}

void update_block_roots(Stream stream, const BlockTable& blocks, const FactorRows& rows, const double* w,
                        const PreferencePair* pairs, std::int64_t count, double scale, double* workspace,
                        double* roots, const BlockProbes& probes, CovarianceStatus* status) {
  if (count == 0) return;
  double* columns = workspace;
  double* shares = columns + count * blocks.parameters;
  double* log_dets = shares + count * blocks.parameters;
  const NewPairs added{rows, pairs, count, std::sqrt(scale)};
  const std::int64_t dots = count * std::max<std::int64_t>(1, probes.count);
  launch(reflect_pairs_kernel, dim3{count_of(blocks.count())}, dim3{kThreads},
         static_cast<std::size_t>(count * count + dots) * sizeof(double), stream, blocks, added, w, columns,
         shares, log_dets, probes, status);
  launch(update_roots_kernel, dim3{count_of(blocks.count()), parts_of(blocks.largest, RootStrip::kColumns)},
         dim3{kThreads}, RootStrip::kSharedBytes, stream, blocks, added, columns, shares, log_dets, roots,
         status);
}

void block_energies(Stream stream, const BlockTable& blocks, const double* roots, const BlockProbes& probes,
                    double* found) {
  launch(block_energies_kernel, dim3{count_of(blocks.count()), count_of(probes.count)}, dim3{kThreads},
         kThreads / 32 * sizeof(double), stream, blocks, roots, probes, found);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
