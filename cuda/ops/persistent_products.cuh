#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ops/relu_network.h"
#include "cuda/ops/float_tile.cuh"
#include "cuda/ops/output_layer.cuh"
#include "cuda/ops/pair_terms.cuh"
#include "cuda/ops/persistent_training.h"
#include "cuda/ops/replay.h"
#include "cuda/runtime/stream.h"

// The blocks of the persistent training kernel share these: its argument, a block's shared memory, and how
// documents and weights come there.
namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent {

constexpr int kThreads = 256;
constexpr int kMostDocTiles = 20;  // of a part
constexpr int kDocLanes = 8;       // that share a document's terms

static_assert(WarpPlace::kRows * kMostDocTiles <= kMostDocsPerFloatSum);

/// Sizes of a block's shared memory, in bytes that are multiples of 16, for so many parts at a time.
struct RoomSizes {
  std::size_t docs;     // [docs × row_stride]
  std::size_t weights;  // [units × row_stride]; later deltas [docs × delta_stride]; later sums of a row
  std::size_t sums;     // [docs × sum_stride] in double; later the slopes of terms
  std::size_t steps;    // [members] in double
  std::size_t delta;    // [docs], then the output layer's weights [units]

  OLRANK_HOST_DEVICE static std::size_t in_sixteens(std::int64_t bytes) {
    return static_cast<std::size_t>((bytes + 15) / 16 * 16);
  }
  OLRANK_HOST_DEVICE RoomSizes(const TrainingParts& of, std::int64_t members, std::int64_t parts) {
    const std::int64_t docs_at_once = parts * of.docs;
    constexpr std::int64_t kFloat = sizeof(float);
    constexpr std::int64_t kDouble = sizeof(double);
    const std::int64_t units = of.padded_units();
    const std::int64_t weight_bytes = units * of.row_stride * kFloat;
    const std::int64_t delta_bytes = docs_at_once * of.delta_stride() * kFloat;
    const std::int64_t row_bytes = max(kThreads, of.quads()) * 4 * kDouble;
    docs = in_sixteens(docs_at_once * of.row_stride * kFloat);
    weights = in_sixteens(max(max(weight_bytes, delta_bytes), row_bytes));
    sums = in_sixteens(docs_at_once * of.sum_stride() * kDouble);
    steps = in_sixteens((members + kThreads / 32) * kDouble);
    delta = in_sixteens((docs_at_once + units) * kFloat);
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
  OLRANK_HOST_DEVICE std::int64_t members() const { return training.stack.members; }
  /// Numbers of a part's gradient: a row per hidden unit, and the sum of δ_L.
  OLRANK_HOST_DEVICE std::int64_t partial_size() const { return std::int64_t{units()} * parts.depth() + 4; }
  /// Rows of parameters: those of a hidden unit, and the bias of the output.
  OLRANK_HOST_DEVICE std::int64_t rows() const { return units() + (output.layer.has_bias() ? 1 : 0); }
  __device__ const float* theta_of(std::int64_t member) const {
    return training.theta + member * output.parameters;
  }
  __device__ float* partial_of(std::int64_t member, std::int64_t part) const {
    return training.workspace.partial + (member * parts.parts + part) * partial_size();
  }
  __device__ std::uint8_t* gates_of(std::int64_t member, std::int64_t part) const {
    return training.workspace.gates + (member * parts.parts + part) * parts.docs * parts.unit_shares();
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

  __device__ Room(const Task& task, std::int64_t parts) {
    const RoomSizes sizes(task.parts, task.members(), parts);
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
    output = delta + parts * task.parts.docs;
  }
};

/// Neighbouring parts of the documents that a block keeps at once, for one member.
struct Item {
  std::int64_t member;
  std::int64_t part;   // the first
  std::int64_t first;  // document
  int docs;
  int tiles;  // of documents

  __device__ Item(const Task& task, std::int64_t number, std::int64_t parts)
      : member(number % task.members()),
        part(number / task.members() * parts),
        first(part * task.parts.docs),
        docs(static_cast<int>(min(parts * task.parts.docs, task.training.history.docs - first))),
        tiles((docs + WarpPlace::kRows - 1) / WarpPlace::kRows) {}
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
  for_each_quad(padded_rows, task.parts.quads(), [&](int row, int quad) {
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
             WarpPlace::kRows * item.tiles, to, [](int) { return 1.0F; });
}

__device__ inline void stage_weights(const Task& task, std::int64_t member, const Room& room) {
  const float* theta = task.theta_of(member);
  stage_rows(task, theta + task.hidden.weight, task.units(), task.parts.padded_units(), room.weights,
             [&](int unit) { return theta[task.hidden.bias + unit]; });
  for (int unit = static_cast<int>(threadIdx.x); unit < task.parts.padded_units(); unit += kThreads)
    room.output[unit] = unit < task.units() ? theta[task.output.layer.weight + unit] : 0.0F;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent

// The passes of the persistent training kernel over the documents in shared memory.
namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent {

/// The number of the calling lane's share of a document's units.
__device__ inline int share_of(const WarpPlace& at) {
  return 4 * at.column_group + static_cast<int>(threadIdx.x) % 4;
}

/// h_1 of the documents in shared memory in float32, columns in order, and from it scores in double and
/// which units are active; h itself is not kept.
__device__ inline void pass_forward(const Task& task, const Item& item, const Room& room) {
  const TrainingParts& parts = task.parts;
  const int shares = parts.unit_shares();
  std::uint8_t* gates = task.gates_of(item.member, item.part);
  for_each_place(1, item.tiles, parts.unit_tiles, [&](int, const WarpPlace& at) {
    FloatTile h;
    h.multiply_add(at, SharedOperand<true>{room.docs, parts.row_stride},
                   SharedOperand<true>{room.weights, parts.row_stride}, parts.depth());
#pragma unroll
    for (int i = 0; i < 2 * WarpPlace::kMostRowTiles; ++i) {
      if (i / 2 >= at.row_tiles) continue;
      double sum = 0.0;
      unsigned active = 0;
#pragma unroll
      for (int j = 0; j < 2 * WarpPlace::kMostColumnTiles; ++j) {
        const float number = h.sum[i / 2][j / 2][i % 2 * 2 + j % 2];
        if (j / 2 >= at.column_tiles || !(number > 0.0F)) continue;
        active |= 1U << j;
        sum += double{room.output[at.column(j / 2, j)]} * double{number};
      }
      const int doc = at.row(i / 2, i % 2 * 2);
      room.sums[doc * parts.sum_stride() + share_of(at)] = sum;
      gates[doc * shares + share_of(at)] = static_cast<std::uint8_t>(active);
    }
  });
  __syncthreads();
  float* scores = task.training.workspace.scores + item.member * task.training.history.docs + item.first;
  for (int doc = static_cast<int>(threadIdx.x); doc < item.docs; doc += kThreads) {
    double sum = 0.0;
    for (int share = 0; share < shares; ++share) sum += room.sums[doc * parts.sum_stride() + share];
    scores[doc] = score_of(task.output, task.theta_of(item.member), sum);
  }
}

/// δ_L of the part's documents, 0 for padding. The terms of a document are split over kDocLanes lanes in
/// order.
__device__ inline void find_output_deltas(const Task& task, const Item& item, const Room& room) {
  const PairHistoryView& history = task.training.history;
  const std::int32_t* offsets = history.incidence.offsets + item.first;
  const std::int32_t first = offsets[0];
  const std::int32_t last = offsets[item.docs];
  const float* scores = task.training.workspace.scores + item.member * history.docs;
  // Terms at their ends, one after another: reading them document by document would wait for memory each
  // time.
  const bool fits = last - first <= WarpPlace::kRows * item.tiles * task.parts.unit_shares();
  double* slopes =
      fits ? room.slopes : task.training.workspace.slopes + item.member * 2 * history.count + first;
#pragma unroll 4
  for (std::int32_t i = first + static_cast<std::int32_t>(threadIdx.x); i < last; i += kThreads)
    slopes[i - first] = slope_at_end(history, scores, item.member, history.incidence.ends[i]);
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kDocLanes;
  const int docs = WarpPlace::kRows * item.tiles;
  for (int begin = 0; begin < docs; begin += kThreads / kDocLanes) {
    const int doc = begin + static_cast<int>(threadIdx.x) / kDocLanes;
    double sum = 0.0;
    if (doc < item.docs) {
      for (std::int32_t i = offsets[doc] + lane; i < offsets[doc + 1]; i += kDocLanes)
        sum += slopes[i - first];
    }
#pragma unroll
    for (int bits = kDocLanes / 2; bits > 0; bits /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, bits);
    if (lane == 0 && doc < docs) room.delta[doc] = task.output.scale * static_cast<float>(sum);
  }
}

/// deltas [part × units]: δ_L where a unit is active, else 0. By the threads that found out.
__device__ inline void spread_deltas(const Task& task, const Item& item, const Room& room) {
  const TrainingParts& parts = task.parts;
  const std::uint8_t* gates = task.gates_of(item.member, item.part);
  for_each_place(1, item.tiles, parts.unit_tiles, [&](int, const WarpPlace& at) {
#pragma unroll
    for (int i = 0; i < 2 * WarpPlace::kMostRowTiles; ++i) {
      if (i / 2 >= at.row_tiles) continue;
      const int doc = at.row(i / 2, i % 2 * 2);
      const unsigned active = gates[doc * parts.unit_shares() + share_of(at)];
      const float delta = room.delta[doc];
#pragma unroll
      for (int v = 0; v < WarpPlace::kMostColumnTiles; ++v) {
        if (v >= at.column_tiles) continue;
        const unsigned two = active >> 2 * v;
        *reinterpret_cast<FloatGroup<2>*>(room.deltas + doc * parts.delta_stride() + at.column(v, 0)) = {
            {(two & 1U) != 0 ? delta : 0.0F, (two & 2U) != 0 ? delta : 0.0F}};
      }
    }
  });
}

/// Writes U [units × columns] = Σ_doc (deltas of doc) ⊗ doc of each part, in float32 and documents in
/// order, and the sum of δ_L.
__device__ inline void sum_outer_products(const Task& task, const Item& item, const Room& room) {
  const TrainingParts& parts = task.parts;
  const int units = task.units();
  const int part_docs = static_cast<int>(parts.docs);
  const int count = (item.docs + part_docs - 1) / part_docs;
  float* sums = task.partial_of(item.member, item.part);
  const auto docs_of = [&](int part) { return min(part_docs, item.docs - part * part_docs); };
  for_each_place(
      count, parts.delta_tiles(), parts.depth() / WarpPlace::kColumns, [&](int part, const WarpPlace& at) {
        FloatTile tile;
        const float* deltas = room.deltas + part * part_docs * parts.delta_stride();
        const float* docs = room.docs + part * part_docs * parts.row_stride;
        tile.multiply_add(at, SharedOperand<false>{deltas, parts.delta_stride()},
                          SharedOperand<false>{docs, parts.row_stride}, (docs_of(part) + 7) / 8 * 8);
        float* out = sums + part * task.partial_size();
#pragma unroll
        for (int i = 0; i < 2 * WarpPlace::kMostRowTiles; ++i) {
          const int row = at.row(i / 2, i % 2 * 2);
          if (i / 2 >= at.row_tiles || row >= units) continue;
#pragma unroll
          for (int v = 0; v < WarpPlace::kMostColumnTiles; ++v) {
            if (v >= at.column_tiles) continue;
            const float* two = tile.sum[i / 2][v] + i % 2 * 2;
            *reinterpret_cast<FloatGroup<2>*>(out + row * parts.depth() +
                                              at.column(v, 0)) = {{two[0], two[1]}};
          }
        }
      });
  if (!task.output.layer.has_bias()) return;
  for (int part = static_cast<int>(threadIdx.x) / 32; part < count; part += kThreads / 32) {
    double sum = 0.0;
    for (int doc = static_cast<int>(threadIdx.x) % 32; doc < docs_of(part); doc += 32)
      sum += double{room.delta[part * part_docs + doc]};
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
      sums[part * task.partial_size() + units * parts.depth()] = static_cast<float>(sum);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent

// The persistent training kernel does this across parts of the documents: whole gradients and the moves by
// them, and losses.
namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent {

/// Takes one step of a parameter.
__device__ inline void move(const PersistentTraining& training, std::int64_t place, std::int64_t number,
                            double step, double gradient) {
  if (step == 0.0) return;
  switch (training.optimizer) {
    case Optimizer::kGradientDescent:
      move_by_descent(place, step, gradient, training.theta);
      return;
    case Optimizer::kNesterov:
      move_by_nesterov(place, step, gradient, training.state, training.theta);
      return;
    case Optimizer::kAdam:
      move_by_adam(place, step, training.rates[number], gradient, training.state, training.theta);
      return;
  }
}

/// Moves a parameter, or keeps its gradient if that is all that is wanted.
__device__ inline void use_gradient(const Task& task, std::int64_t place, std::int64_t number, double step,
                                    double of_data) {
  const PersistentTraining& training = task.training;
  const double gradient = training.objective.data_scale * of_data +
                          slope_of_parameter(training.objective, place, double{training.theta[place]});
  if (training.gradient != nullptr) {
    training.gradient[place] = gradient;
  } else {
    move(training, place, number, step, gradient);
  }
}

/// The bias of the output, by the first warp.
__device__ inline void use_output_bias(const Task& task, std::int64_t member, std::int64_t number,
                                       const Room& room) {
  if (threadIdx.x >= 32) return;
  double sum = 0.0;
  for (std::int64_t part = threadIdx.x; part < task.parts.parts; part += 32)
    sum += double{task.partial_of(member, part)[task.units() * task.parts.depth()]};
  sum = warp_sum(sum);
  if (threadIdx.x != 0) return;
  const std::int64_t place = member * task.output.parameters + task.output.layer.bias;
  use_gradient(task, place, number, room.steps[member], sum);
}

/// The gradient of a hidden unit's weights and of the weight w that the output gives it, in double. With U
/// the sum of the outer products, parts in order: ∂W = w U and ∂w = Σ_doc δ_L h = W·U, as h = W·x where the
/// unit is active.
__device__ inline void use_row(const Task& task, std::int64_t member, int unit, std::int64_t number,
                               const Room& room) {
  const int quads = task.parts.quads();
  const int columns = task.parts.columns;
  const int groups = max(1, kThreads / quads);
  const float* partial = task.partial_of(member, 0) + std::int64_t{unit} * 4 * quads;
  for (int cell = static_cast<int>(threadIdx.x); cell < groups * quads; cell += kThreads) {
    const int group = cell / quads;
    const float* numbers = partial + cell % quads * 4;
    double sum[4] = {};
#pragma unroll 8
    for (std::int64_t part = group; part < task.parts.parts; part += groups) {
      const auto four = *reinterpret_cast<const FloatGroup<4>*>(numbers + part * task.partial_size());
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += double{four.value[e]};
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) room.row[group * 4 * quads + cell % quads * 4 + e] = sum[e];
  }
  const std::int64_t first = member * task.output.parameters;
  const std::int64_t output_place = first + task.output.layer.weight + unit;
  const double output_weight{task.training.theta[output_place]};
  const double step = room.steps[member];
  __syncthreads();
  double product = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < columns; column += kThreads) {
    double sum = 0.0;
    for (int group = 0; group < groups; ++group) sum += room.row[group * 4 * quads + column];
    const bool is_bias = column == task.inputs();
    const std::int64_t place =
        first + (is_bias ? task.hidden.bias + unit
                         : task.hidden.weight + std::int64_t{unit} * task.inputs() + column);
    product += double{task.training.theta[place]} * sum;
    use_gradient(task, place, number, step, output_weight * sum);
  }
  product = block_sum(product, room.warps);
  if (threadIdx.x == 0) use_gradient(task, output_place, number, step, product);
  __syncthreads();
}

__device__ inline void sum_losses(const Grid& grid, const Task& task, const Room& room) {
  const PersistentTraining& training = task.training;
  const LossBlocks& blocks = task.loss_blocks;
  for (std::int64_t i = grid.block.x; i < task.members() * blocks.all; i += grid.extent.x) {
    const double sum =
        loss_sum(training.history, training.workspace.scores, training.theta, task.output.parameters,
                 training.objective, blocks, i / blocks.all, i % blocks.all, room.warps);
    if (threadIdx.x == 0) training.workspace.losses[i] = sum;
    __syncthreads();
  }
}

/// The last block does this, as it has the fewest rows.
__device__ inline void finish_losses(const Grid& grid, const Task& task, double* losses) {
  if (grid.block.x != grid.extent.x - 1) return;
  const LossBlocks& blocks = task.loss_blocks;
  for (std::int64_t member = threadIdx.x; member < task.members(); member += kThreads)
    losses[member] =
        loss_of_sums(blocks, task.training.workspace.losses + member * blocks.all, task.training.objective);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent
