#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/online/preference_pair.h"
#include "core/ops/tangent_shape.h"
#include "core/runtime/function_ref.h"
#include "cuda/engine/mapped_array.h"
#include "cuda/engine/saved_values.h"
#include "cuda/ops/relu_layers.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

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
  // Of products() and sum(): a drift check asks for many, and freeing memory waits for the whole device.
  GrowingArray<double> of_parameters_;
  GrowingArray<double> of_docs_;
  GrowingArray<double> workspace_;
  Lineage lineage_;
  mutable LatestSave latest_save_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
