#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ops/relu_layers.h"
#include "cuda/ops/float_tile.cuh"
#include "cuda/ops/output_layer.cuh"
#include "cuda/ops/pair_terms.cuh"
#include "cuda/ops/persistent_training.h"
#include "cuda/runtime/grid_size.h"

// The blocks of the persistent training kernel share these: its argument, a block's shared memory, and how
// documents and weights come there.
namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent {

constexpr int kThreads = 256;
constexpr int kUnits = 8;    // of a thread's tile
constexpr int kColumns = 8;  // of a thread's tile of a gradient
constexpr int kMostDocsOfThread = 8;
constexpr int kMostDocShares = 32;  // so that no float32 sum is over more than 256 documents
constexpr int kDocLanes = 8;        // that share a document's terms

static_assert(kMostDocShares * kMostDocsOfThread <= kMostDocsPerFloatSum);

/// Sizes of a block's shared memory, in bytes that are multiples of 16.
struct RoomSizes {
  std::size_t docs;     // [part × row_stride]
  std::size_t weights;  // [units × row_stride]; later deltas [part × delta_stride]; later sums of a row
  std::size_t sums;     // [part × unit_shares] in double; later the slopes of terms
  std::size_t steps;    // [members] in double
  std::size_t delta;    // [part], then the output layer's weights [units]

  OLRANK_HOST_DEVICE static std::size_t in_sixteens(std::int64_t bytes) {
    return static_cast<std::size_t>((bytes + 15) / 16 * 16);
  }
  OLRANK_HOST_DEVICE RoomSizes(const TrainingParts& of, std::int64_t members) {
    constexpr std::int64_t kFloat = sizeof(float);
    constexpr std::int64_t kDouble = sizeof(double);
    const std::int64_t units = std::int64_t{kUnits} * of.unit_shares;
    const std::int64_t weight_bytes = units * of.row_stride * kFloat;
    const std::int64_t delta_bytes = of.docs * (units + 4) * kFloat;
    const std::int64_t row_bytes = max(std::int64_t{kThreads}, parts_of(of.columns, 4)) * 4 * kDouble;
    docs = in_sixteens(of.docs * of.row_stride * kFloat);
    weights = in_sixteens(max(max(weight_bytes, delta_bytes), row_bytes));
    sums = in_sixteens(of.docs * of.unit_shares * kDouble);
    steps = in_sixteens((members + kThreads / 32) * kDouble);
    delta = in_sixteens((of.docs + units) * kFloat);
  }
  OLRANK_HOST_DEVICE std::size_t all() const { return docs + weights + sums + steps + delta; }
};

/// The kernel's argument.
struct Task {
  PersistentTraining training;
  TrainingParts parts;
  OutputLayer output;
  NetworkLayer hidden;
  LossBlocks loss_blocks;

  OLRANK_HOST_DEVICE int units() const { return static_cast<int>(hidden.rows); }
  OLRANK_HOST_DEVICE int inputs() const { return static_cast<int>(hidden.columns); }
  OLRANK_HOST_DEVICE int padded_units() const { return kUnits * parts.unit_shares; }
  /// Groups of four columns.
  OLRANK_HOST_DEVICE int quads() const { return (parts.columns + 3) / 4; }
  OLRANK_HOST_DEVICE int delta_stride() const { return padded_units() + 4; }
  OLRANK_HOST_DEVICE std::int64_t members() const { return training.stack.members; }
  OLRANK_HOST_DEVICE std::int64_t items() const { return parts.parts * members(); }
  /// Numbers of a part's gradient: a row per hidden unit, and the sum of δ_L.
  OLRANK_HOST_DEVICE std::int64_t partial_size() const { return std::int64_t{units()} * 4 * quads() + 4; }
  /// Rows of parameters: those of a hidden unit, and the bias of the output.
  OLRANK_HOST_DEVICE std::int64_t rows() const { return units() + (output.layer.has_bias() ? 1 : 0); }
  __device__ const float* theta_of(std::int64_t member) const {
    return training.theta + member * output.parameters;
  }
  __device__ float* partial_of(std::int64_t member, std::int64_t part) const {
    return training.workspace.partial + (member * parts.parts + part) * partial_size();
  }
  __device__ std::uint8_t* gates_of(std::int64_t member, std::int64_t part) const {
    return training.workspace.gates + (member * parts.parts + part) * parts.docs * parts.unit_shares;
  }
};

/// A block's shared memory.
struct Room {
  float* docs;
  float* weights;
  float* deltas;
  double* row;
  double* sums;
  double* slopes;
  double* steps;
  double* warps;
  float* delta;
  float* output;

  __device__ Room(const Task& task) {
    const RoomSizes sizes(task.parts, task.members());
    char* place = dynamic_shared<char>();
    docs = reinterpret_cast<float*>(place);
    place += sizes.docs;
    weights = deltas = reinterpret_cast<float*>(place);
    row = reinterpret_cast<double*>(place);
    place += sizes.weights;
    sums = slopes = reinterpret_cast<double*>(place);
    place += sizes.sums;
    steps = reinterpret_cast<double*>(place);
    warps = steps + task.members();
    place += sizes.steps;
    delta = reinterpret_cast<float*>(place);
    output = delta + task.parts.docs;
  }
};

/// A part of the documents, for one member.
struct Item {
  std::int64_t member;
  std::int64_t part;
  std::int64_t first;  // document
  int docs;

  __device__ Item(const Task& task, std::int64_t number)
      : member(number % task.members()),
        part(number / task.members()),
        first(part * task.parts.docs),
        docs(static_cast<int>(min(task.parts.docs, task.training.history.docs - first))) {}
};

/// Calls body(row, quad) for rows × quads, split over the block's threads.
template <class Body>
__device__ void for_each_quad(int rows, int quads, const Body& body) {
  int row = static_cast<int>(threadIdx.x) / quads;
  int quad = static_cast<int>(threadIdx.x) % quads;
  const int row_step = kThreads / quads;
  const int quad_step = kThreads % quads;
  while (row < rows) {
    body(row, quad);
    row += row_step;
    quad += quad_step;
    if (quad >= quads) {
      quad -= quads;
      ++row;
    }
  }
}

/// Starts copying a matrix [rows × inputs] to shared memory, padded with zeros to padded_rows and to whole
/// quads. Where there are biases, row i gets bias_of(i) as another column.
template <class Bias>
__device__ void stage_rows(const Task& task, const float* from, int rows, int padded_rows, float* to,
                           const Bias& bias_of) {
  const int inputs = task.inputs();
  const bool fours = reinterpret_cast<std::uintptr_t>(from) % sizeof(FloatGroup<4>) == 0 && inputs % 4 == 0;
  for_each_quad(padded_rows, task.quads(), [&](int row, int quad) {
    float* out = to + row * task.parts.row_stride + 4 * quad;
    const float* in = from + std::int64_t{row} * inputs + 4 * quad;
    if (fours && row < rows && 4 * quad < inputs) {
      copy_async<4>(out, in);
      return;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = 4 * quad + e;
      if (row < rows && column < inputs) {
        copy_async<1>(out + e, in + e);
      } else {
        out[e] = row < rows && column < task.parts.columns ? bias_of(row) : 0.0F;
      }
    }
  });
}

__device__ inline void stage_docs(const Task& task, const Item& item, float* to) {
  stage_rows(task, task.training.history.features + item.first * task.hidden.columns, item.docs,
             static_cast<int>(task.parts.docs), to, [](int) { return 1.0F; });
}

__device__ inline void stage_weights(const Task& task, std::int64_t member, const Room& room) {
  const float* theta = task.theta_of(member);
  stage_rows(task, theta + task.hidden.weight, task.units(), task.padded_units(), room.weights,
             [&](int unit) { return theta[task.hidden.bias + unit]; });
  for (int unit = static_cast<int>(threadIdx.x); unit < task.padded_units(); unit += kThreads)
    room.output[unit] = unit < task.units() ? theta[task.output.layer.weight + unit] : 0.0F;
}

/// The quads that a thread multiplies at a time.
template <int kCount>
__device__ void read_quads(const float* from, int step, FloatGroup<4> (&to)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = *reinterpret_cast<const FloatGroup<4>*>(from + i * step);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent
