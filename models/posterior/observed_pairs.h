#pragma once

#include <cstdint>
#include <span>

#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/aligned_vector.h"

namespace olrank {

/// The tangent factors of all observed pairs, winner then loser. Documents are not shared between pairs, as
/// their gradients belong to the parameters of the round.
class ObservedPairs {
 public:
  explicit ObservedPairs(const NetworkShape& shape) : shape_(shape) {}

  std::int64_t pairs() const { return static_cast<std::int64_t>(values_.size()) / (2 * shape_.factors()); }
  TangentFactors all() const { return {values_.data(), 2 * pairs()}; }
  /// Pairs `first` to `first + count`.
  TangentFactors range(std::int64_t first, std::int64_t count) const {
    return {values_.data() + first * 2 * shape_.factors(), 2 * count};
  }
  void append(TangentFactors docs, std::span<const PreferencePair> pairs);
  /// Forgets all but the first `pairs`.
  void truncate(std::int64_t pairs);
  std::int64_t bytes() const { return static_cast<std::int64_t>(values_.capacity() * sizeof(float)); }

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  NetworkShape shape_;
  AlignedVector<float> values_;
};

}  // namespace olrank
