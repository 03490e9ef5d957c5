#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// The tangent factors of all observed pairs, winner then loser. Documents are not shared between pairs, as
/// their gradients belong to the parameters of the round. Copies share the pairs that both have, so that
/// threads can read one while another appends; only one copy may append.
class ObservedPairs {
 public:
  explicit ObservedPairs(const TangentShape& shape)
      : shape_(shape), values_(std::make_shared<AlignedVector<float>>()) {}

  std::int64_t pairs() const { return pairs_; }
  TangentFactors all() const { return {first_, 2 * pairs_}; }
  /// Pairs `first` to `first + count`.
  TangentFactors range(std::int64_t first, std::int64_t count) const {
    return {first_ + first * 2 * shape_.factors(), 2 * count};
  }
  void append(TangentFactors docs, std::span<const PreferencePair> pairs);
  /// Forgets the pairs from this number on, which no checkpoint has.
  void truncate(std::int64_t pairs);
  /// Counts the bytes of the pairs; up to twice as much is allocated.
  std::int64_t bytes() const { return static_cast<std::int64_t>(values_->size() * sizeof(float)); }

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  void make_room(std::int64_t pairs);

  TangentShape shape_;
  std::shared_ptr<AlignedVector<float>> values_;
  const float* first_ = nullptr;  // read by copies; only the copy that appends uses the vector
  std::int64_t pairs_ = 0;
  Lineage lineage_;
};

/// ‖g‖² from a document's factors.
double gradient_length_sq(const TangentShape& shape, const float* factors);

/// Throws NumericError where a document of these pairs has more information than a covariance with λ takes
/// in: core/covariance/covariance_checks.h.
void require_information(const TangentShape& shape, double lambda, double scale, TangentFactors docs,
                         std::span<const PreferencePair> pairs);

}  // namespace olrank
