#pragma once

#include <cstdint>

#include "core/device/round.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/indexed_pairs.h"
#include "cuda/engine/packet.h"
#include "cuda/ops/pair_training.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The pairs that a round trains on in the place of the whole history, with their documents, on the device.
/// Padded to sizes that most rounds share, so that one captured graph serves them.
class ResidentSample {
 public:
  /// The padded sizes; functions of the true sizes and of `replay` alone.
  struct Bucket {
    std::int64_t docs = 0;
    std::int64_t terms = 0;

    friend bool operator==(const Bucket&, const Bucket&) = default;
  };

  /// Of `replay` pairs drawn from the history, and a round's own.
  ResidentSample(std::int64_t features, std::int64_t replay) : features_(features), replay_(replay) {}

  /// Replaces the sample; `history` holds the documents of the whole history, on the
  /// device.
  void fill(Stream stream, const DeviceUpdate& update, const PackedUpdate& packed, const float* history);

  const Bucket& bucket() const { return bucket_; }
  /// Grows whenever an array that recorded graphs point into has moved.
  std::int64_t moves() const { return moves_; }
  /// Weights and labels of its terms are undefined: they depend on the member.
  PairHistoryView view() const { return pairs_.view({bucket_.docs, bucket_.terms}); }
  /// The documents with those that no own pair has as zeros: a score that overflows, of a document that was
  /// only drawn, would make the gradient of the own pairs NaN, although its pairs weigh nothing.
  const float* own_features() const { return own_values_.data(); }
  const SampledTerm* sources() const { return sources_.data(); }
  std::int64_t bytes() const;

 private:
  std::int64_t features_;
  std::int64_t replay_;
  Bucket bucket_;
  std::int64_t moves_ = 0;
  IndexedPairs pairs_;
  GrowingArray<float> own_values_;
  GrowingArray<SampledTerm> sources_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
