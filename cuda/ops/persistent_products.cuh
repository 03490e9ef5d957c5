#pragma once

#include <cstdint>

#include "cuda/ops/persistent_room.cuh"

// The passes of the persistent training kernel over the documents in shared memory.
namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent {

/// h_1 of the documents in shared memory in float32, columns in order, and from it scores in double and
/// which units are active; h itself is not kept. A thread owns kDocs × 8 numbers, document and unit i of
/// every i-th share.
template <int kDocs>
__device__ void pass_forward(const Task& task, const Item& item, const Room& room) {
  const int shares = task.parts.unit_shares;
  const int doc_share = static_cast<int>(threadIdx.x) / shares;
  const int unit_share = static_cast<int>(threadIdx.x) % shares;
  const int stride = task.parts.row_stride;
  if (doc_share < task.parts.doc_shares) {
    float h[kDocs][kUnits] = {};
    const float* docs = room.docs + doc_share * stride;
    const float* weights = room.weights + unit_share * stride;
    const int quads = task.quads();
    for (int quad = 0; quad < quads; ++quad) {
      FloatGroup<4> x[kDocs];
      FloatGroup<4> w[kUnits];
      read_quads(docs + 4 * quad, task.parts.doc_shares * stride, x);
      read_quads(weights + 4 * quad, shares * stride, w);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int i = 0; i < kDocs; ++i) {
#pragma unroll
          for (int j = 0; j < kUnits; ++j) h[i][j] += x[i].value[e] * w[j].value[e];
        }
      }
    }
    double output[kUnits];
#pragma unroll
    for (int j = 0; j < kUnits; ++j) output[j] = double{room.output[unit_share + j * shares]};
    std::uint8_t* gates = task.gates_of(item.member, item.part);
#pragma unroll
    for (int i = 0; i < kDocs; ++i) {
      double sum = 0.0;
      unsigned active = 0;
#pragma unroll
      for (int j = 0; j < kUnits; ++j) {
        const bool passes = h[i][j] > 0.0F;
        active |= (passes ? 1U : 0U) << j;
        sum += output[j] * (passes ? double{h[i][j]} : 0.0);
      }
      const int place = (doc_share + i * task.parts.doc_shares) * shares + unit_share;
      room.sums[place] = sum;
      gates[place] = static_cast<std::uint8_t>(active);
    }
  }
  __syncthreads();
  float* scores = task.training.workspace.scores + item.member * task.training.history.docs + item.first;
  for (int doc = static_cast<int>(threadIdx.x); doc < item.docs; doc += kThreads) {
    double sum = 0.0;
    for (int share = 0; share < shares; ++share) sum += room.sums[doc * shares + share];
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
  const bool fits = last - first <= task.parts.docs * task.parts.unit_shares;
  double* slopes =
      fits ? room.slopes : task.training.workspace.slopes + item.member * 2 * history.count + first;
#pragma unroll 4
  for (std::int32_t i = first + static_cast<std::int32_t>(threadIdx.x); i < last; i += kThreads)
    slopes[i - first] = slope_at_end(history, scores, item.member, history.incidence.ends[i]);
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kDocLanes;
  const int docs = static_cast<int>(task.parts.docs);
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
template <int kDocs>
__device__ void spread_deltas(const Task& task, const Item& item, const Room& room) {
  const int shares = task.parts.unit_shares;
  const int doc_share = static_cast<int>(threadIdx.x) / shares;
  const int unit_share = static_cast<int>(threadIdx.x) % shares;
  if (doc_share >= task.parts.doc_shares) return;
  const std::uint8_t* gates = task.gates_of(item.member, item.part);
#pragma unroll
  for (int i = 0; i < kDocs; ++i) {
    const int doc = doc_share + i * task.parts.doc_shares;
    const unsigned active = gates[doc * shares + unit_share];
    const float delta = room.delta[doc];
#pragma unroll
    for (int j = 0; j < kUnits; ++j) {
      room.deltas[doc * task.delta_stride() + unit_share + j * shares] =
          (active >> j & 1U) != 0 ? delta : 0.0F;
    }
  }
}

/// U [units × columns] = Σ_doc (deltas of doc) ⊗ doc in float32, documents in order, and the sum of δ_L. A
/// thread owns 8 × 8 numbers: two groups of four units and two of four columns.
__device__ inline void sum_outer_products(const Task& task, const Item& item, const Room& room) {
  const int quads = task.quads();
  const int column_shares = (quads + 1) / 2;
  const int units = task.units();
  float* sums = task.partial_of(item.member, item.part);
  for (int tile = static_cast<int>(threadIdx.x); tile < task.parts.unit_shares * column_shares;
       tile += kThreads) {
    const int unit = tile / column_shares * 4;
    const int column = tile % column_shares * 4;
    const int unit_step = 4 * task.parts.unit_shares;
    const bool has_second = tile % column_shares + column_shares < quads;
    const int column_step = has_second ? 4 * column_shares : 0;
    float sum[kUnits][kColumns] = {};
    const float* deltas = room.deltas + unit;
    const float* docs = room.docs + column;
#pragma unroll 4
    for (int doc = 0; doc < item.docs; ++doc) {
      FloatGroup<4> a[2];
      FloatGroup<4> b[2];
      read_quads(deltas + doc * task.delta_stride(), unit_step, a);
      read_quads(docs + doc * task.parts.row_stride, column_step, b);
#pragma unroll
      for (int i = 0; i < kUnits; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[i][j] += a[i / 4].value[i % 4] * b[j / 4].value[j % 4];
      }
    }
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const int row = unit + i / 4 * unit_step + i % 4;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        if (row >= units || (g == 1 && !has_second)) continue;
        FloatGroup<4> out;
#pragma unroll
        for (int e = 0; e < 4; ++e) out.value[e] = sum[i][4 * g + e];
        *reinterpret_cast<FloatGroup<4>*>(sums + row * 4 * quads + column + g * column_step) = out;
      }
    }
  }
  if (task.output.layer.has_bias() && threadIdx.x < 32) {
    double sum = 0.0;
    for (int doc = static_cast<int>(threadIdx.x); doc < item.docs; doc += 32)
      sum += double{room.delta[doc]};
    sum = warp_sum(sum);
    if (threadIdx.x == 0) sums[units * 4 * quads] = static_cast<float>(sum);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent
