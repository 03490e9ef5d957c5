#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/io/mapped_memory.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"
#include "cuda/engine/growing_array.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

class SavedValues;

/// The latest save of an array, which may not be complete. Member of the array's owner, behind the array.
class LatestSave {
 public:
  LatestSave() = default;
  ~LatestSave();
  LatestSave(LatestSave&&) = default;
  LatestSave& operator=(LatestSave&&) = delete;

  void set(const std::shared_ptr<SavedValues>& values) { values_ = values; }
  /// It has to be called before values change or move.
  void release() const;

 private:
  std::weak_ptr<SavedValues> values_;
};

/// Where values in device memory are.
class DeviceSource : public GrowingSource {
 public:
  template <class T>
  DeviceSource(const T* first, LatestSave& latest)
      : first_(reinterpret_cast<const std::byte*>(first)), latest_(latest) {}

  void copy(std::size_t first, std::span<std::byte> to) const override { copy_to_host(first_ + first, to); }
  std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const override;

 private:
  const std::byte* first_;
  LatestSave& latest_;
};

/// The tangent factors of all observed pairs, winner then loser, each at the parameters of its round. A
/// full covariance is rebuilt from them.
class ResidentPairs {
 public:
  explicit ResidentPairs(const TangentShape& shape) : shape_(shape) {}

  std::int64_t pairs() const { return pairs_; }
  std::int64_t bytes() const {
    return rows_.bytes() + of_parameters_.bytes() + of_docs_.bytes() + workspace_.bytes();
  }
  FactorRows all() { return range(0, pairs_); }
  FactorRows range(std::int64_t first, std::int64_t count) {
    return {rows_.data() + first * 2 * shape_.factors(), 2 * count, shape_.factors()};
  }
  /// Forgets all pairs and keeps their memory.
  void clear();
  /// Pairs [count] on the device, of `docs`.
  void append(Stream stream, const FactorRows& docs, const PreferencePair* pairs, std::int64_t count);

  /// Calls observe(docs, pairs on the device, count) for batches of all pairs so far, in order.
  void replay(
      Stream stream,
      FunctionRef<void(const FactorRows& docs, const PreferencePair* pairs, std::int64_t count)> observe);
  /// The most documents of a batch of replay().
  static constexpr std::int64_t kMostReplayed = 128;

  /// g_s [p] of one pair; waits.
  std::vector<double> gradient(Stream stream, std::int64_t pair);
  /// g_s·v of every pair, and Σ_s weights[s] g_s; both wait.
  std::vector<double> products(Stream stream, std::span<const double> v);
  std::vector<double> sum(Stream stream, std::span<const double> weights);

  void save(StateWriter& state) const;
  void load(Stream stream, StateReader& state);

 private:
  TangentShape shape_;
  MappedArray<float> rows_;  // [2 · pairs × factors]
  std::int64_t pairs_ = 0;
  // products() and sum() use these. Drift checks call both often, and freeing waits for the whole device.
  GrowingArray<double> of_parameters_;
  GrowingArray<double> of_docs_;
  GrowingArray<double> workspace_;
  Lineage lineage_;
  mutable LatestSave latest_save_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
