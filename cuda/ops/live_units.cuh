#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/ops/relu_network.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/relu_layers.h"

// Sums over all units by tiles [64 × 64] of documents, which skip units that are inactive for a
// tile's documents.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a sum over units is split into parts. Depends on sizes only.
struct UnitParts {
  static constexpr std::int64_t kMostUnits = 128;     // of a part
  static constexpr std::int64_t kWantedBlocks = 528;  // four per multiprocessor of a large device

  std::int64_t units;  // of a part
  std::int64_t count;

  UnitParts(std::int64_t all_units, std::int64_t docs) {
    const std::int64_t wanted = std::max<std::int64_t>(1, kWantedBlocks / lower_tiles(docs));
    units = std::clamp<std::int64_t>((all_units + wanted - 1) / wanted, 1, kMostUnits);
    count = (all_units + units - 1) / units;
  }
};

/// Units of a part that are active for some document of a tile's rows and for some of its columns, in
/// shared memory behind a DoubleTile's.
class LiveUnits {
 public:
  static constexpr std::size_t kSharedBytes =
      DoubleTile::kSharedBytes + (UnitParts::kMostUnits + 1) * sizeof(int);

  /// Lists those of [first, last). All threads of the block call it.
  __device__ LiveUnits(const LayerTable& layers, const FactorRows& rows, std::int64_t first,
                       std::int64_t last, std::int64_t row, std::int64_t column)
      : units_(
            reinterpret_cast<int*>(dynamic_shared<double>() + DoubleTile::kSharedBytes / sizeof(double))) {
    int* count = units_ + UnitParts::kMostUnits;
    // First, units_[i] flags whether unit i is active; a warp checks every fourth unit.
    const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
    for (std::int64_t unit = first + threadIdx.x / 32; unit < last; unit += DoubleTile::kThreads / 32) {
      const std::int64_t delta = layers.layer_of(unit).delta + layers.row_of(unit);
      const auto lives = [&](std::int64_t begin) {
        bool any = false;
        for (std::int64_t doc = begin + lane; doc < min(begin + DoubleTile::kSide, rows.docs); doc += 32) {
          any = any || rows.values[doc * rows.stride + delta] != 0.0F;
        }
        return __any_sync(kWholeWarp, any) != 0;
      };
      const bool both = lives(row) && lives(column);
      if (lane == 0) units_[unit - first] = both ? 1 : 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int live = 0;
      for (std::int64_t unit = first; unit < last; ++unit) {
        if (units_[unit - first] != 0) units_[live++] = static_cast<int>(unit);
      }
      *count = live;
    }
    __syncthreads();
    count_ = *count;
  }

  __device__ const int* list() const { return units_; }
  /// Numbers of all of them, each padded to whole blocks of k.
  __device__ std::int64_t depth(const LayerTable& layers) const {
    std::int64_t depth = 0;
    for (int at = 0; at < count_; ++at) depth += padded(layers.layer_of(units_[at]));
    return depth;
  }
  __device__ static std::int64_t padded(const NetworkLayer& layer) {
    return (layer.unit_parameters() + DoubleTile::kDepth - 1) / DoubleTile::kDepth * DoubleTile::kDepth;
  }

 private:
  int* units_;
  int count_ = 0;
};

/// A place in the numbers of listed units: a unit's weights, then its bias, then padding.
struct UnitWalk {
  const LayerTable& layers;
  const int* units;  // the list

  int place = -1;  // in the list
  std::int64_t begin = 0;
  std::int64_t end = 0;

  /// Whether the walk has come to another unit.
  __device__ bool advance(std::int64_t k) {
    if (k < end) return false;
    while (k >= end) {
      ++place;
      begin = end;
      end += LiveUnits::padded(layer());
    }
    return true;
  }
  __device__ std::int64_t unit() const { return units[place]; }
  __device__ const NetworkLayer& layer() const { return layers.layer_of(unit()); }
  /// The number counts the unit in its layer.
  __device__ std::int64_t number() const { return layers.row_of(unit()); }
};

/// The last layer of weights, and its connection to the layer below.
struct OutputLayer {
  NetworkLayer layer;
  std::int64_t hidden_delta = -1;  // offset of δ_{L−1} in a row; −1 without a hidden layer
  std::int64_t parameters = 0;     // p, from one member to the next
  float scale = 1.0F;
  double scale_in_double = 1.0;

  explicit OutputLayer(const NetworkShape& shape)
      : layer(shape.layer(shape.depth - 1)),
        parameters(shape.parameters()),
        scale(static_cast<float>(shape.output_scale)),
        scale_in_double(shape.output_scale) {
    if (shape.depth > 1) hidden_delta = shape.layer(shape.depth - 2).delta;
  }
};

/// δ_L = scale · slope and δ_{L−1} of one document, by the calling warp. ReLU's derivative at 0 is 0.
__device__ inline void write_output_deltas(const OutputLayer& output, const float* theta, float slope,
                                           float* row) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  const float delta = output.scale * slope;
  if (lane == 0) row[output.layer.delta] = delta;
  if (output.hidden_delta < 0) return;
  const float* weight = theta + output.layer.weight;
  for (std::int64_t r = lane; r < output.layer.columns; r += 32) {
    row[output.hidden_delta + r] = row[output.layer.input + r] > 0.0F ? delta * weight[r] : 0.0F;
  }
}

/// A score from the sum over the inputs of the output layer.
__device__ inline float score_of(const OutputLayer& output, const float* theta, double sum) {
  const double bias = output.layer.has_bias() ? double{theta[output.layer.bias]} : 0.0;
  return static_cast<float>(output.scale_in_double * (sum + bias));
}

/// A document's score from its last hidden units (its features without a hidden layer), by the calling
/// warp: products of float32 numbers are exact in double. The terms k and k + ⌊columns/2⌋ are
/// added first, so that the halves of a symmetric network, whose units are sums in one order, cancel to 0.
__device__ inline void write_score(const OutputLayer& output, const float* theta, const float* inputs,
                                   std::int64_t place, const ScoreArrays& out) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  const float* weight = theta + output.layer.weight;
  double sum = 0.0;
  double absolute = 0.0;
  const std::int64_t half = output.layer.columns / 2;
  for (std::int64_t k = lane; k < half; k += 32) {
    const double first = double{weight[k]} * double{inputs[k]};
    const double second = double{weight[k + half]} * double{inputs[k + half]};
    sum += first + second;
    absolute += std::fabs(first) + std::fabs(second);
  }
  if (lane == 0 && output.layer.columns % 2 != 0) {
    const std::int64_t last = output.layer.columns - 1;
    const double term = double{weight[last]} * double{inputs[last]};
    sum += term;
    absolute += std::fabs(term);
  }
  sum = warp_sum(sum);
  if (out.magnitudes != nullptr) absolute = warp_sum(absolute);
  if (lane != 0) return;
  out.scores[place] = score_of(output, theta, sum);
  if (out.magnitudes != nullptr) {
    const double bias = output.layer.has_bias() ? double{theta[output.layer.bias]} : 0.0;
    out.magnitudes[place] = static_cast<float>(output.scale_in_double * (absolute + std::fabs(bias)));
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
