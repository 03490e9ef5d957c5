#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
