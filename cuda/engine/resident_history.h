#pragma once

#include <cstdint>
#include <vector>

#include "core/device/device_network.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/pair_training.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// kLog2 of the first ranks.
std::vector<double> discounts_of(std::int64_t ranks);

/// The pairs that a round trains on in the place of the whole history, with their documents, on the device.
/// Padded to sizes that most rounds share, so that one captured graph serves them.
class ResidentSample {
 public:
  /// The sample has `replay` pairs drawn from the history, and a round's own.
  ResidentSample(std::int64_t features, std::int64_t replay) : features_(features), replay_(replay) {}

  /// Replaces the sample; `history` holds the documents of the whole history, on the
  /// device.
  void fill(Stream stream, const DeviceUpdate& update, const PackedUpdate& packed, const float* history);

  /// The padded sizes; functions of the true sizes and of `replay` alone.
  const PairSizes& bucket() const { return bucket_; }
  /// Grows whenever an array that recorded graphs point into has moved.
  std::int64_t moves() const { return moves_; }
  /// Weights and labels of its terms are undefined: they depend on the member.
  PairHistoryView view() const { return pairs_.view(bucket_); }
  /// The documents with those that no own pair has as zeros: a score that overflows, of a document that was
  /// only drawn, would make the gradient of the own pairs NaN, although its pairs weigh nothing.
  const float* own_features() const { return own_values_.data(); }
  const SampledTerm* sources() const { return sources_.data(); }
  std::int64_t bytes() const { return bytes_of(pairs_, own_values_, sources_); }

 private:
  std::int64_t features_;
  std::int64_t replay_;
  PairSizes bucket_;
  std::int64_t moves_ = 0;
  IndexedPairs pairs_;
  GrowingArray<float> own_values_;
  GrowingArray<SampledTerm> sources_;
};

/// All preferences so far, on the device: distinct documents, folded pairs, for mini-batches every single
/// pair and, for LambdaRank, the lists of the pairs. Arrays are padded to sizes that change rarely, so that
/// one captured graph serves many rounds. The host keeps the index of documents and pairs.
class ResidentHistory {
 public:
  /// This says what is kept in addition to folded pairs: nothing, every pair, or every pair and its list.
  enum class Keeps { kTerms, kObservations, kLists };

  /// `replay` pairs are drawn from the history for rounds that do not train on all of it.
  ResidentHistory(std::int64_t features, Keeps keeps, std::int64_t most_docs, std::int64_t replay = 0);

  /// Adds a round's update, and takes its sample; `documents` holds the new ones, on the device.
  void add(Stream stream, const DeviceUpdate& update, const float* documents);
  /// Grows whenever an array that recorded graphs point into has moved.
  std::int64_t moves() const { return moves_; }
  /// The padded sizes; functions of the true sizes alone. Examined documents are not padded.
  const PairSizes& bucket() const { return bucket_; }

  std::int64_t observed() const { return observed_; }
  bool latest_docs_outgrow() const { return latest_docs_outgrow_; }
  /// These tell what the latest round trains on, and its sample.
  TrainingExtent latest_extent() const { return latest_extent_; }
  const ResidentSample& sample() const { return sample_; }
  /// The latest update, valid until the next one.
  const PackedUpdate& latest() const { return latest_; }
  std::int64_t bytes() const;

  /// The view shows the latest training on all of it; terms that came later are not yet indexed.
  PairHistoryView view() const { return pairs_.view(bucket_); }
  /// This view lacks the padding of documents, for work that is not recorded.
  PairHistoryView view_of_docs() const { return pairs_.view({counts_.docs, bucket_.terms}); }
  ImpressionView impressions() const;
  const PairObservation* observations() const { return observations_.data(); }
  const std::int32_t* observation_offsets() const { return group_offsets_.data(); }
  const std::int32_t* observation_items() const { return group_items_.data(); }

  /// Replaces the whole history; waits.
  void restore(Stream stream, const DeviceHistory& history);

 private:
  /// `most_examined`: documents of a list.
  void make_room(Stream stream, const PairSizes& wanted, std::int64_t most_examined);
  void index_terms(Stream stream);

  std::int64_t features_;
  bool keeps_observations_;
  bool keeps_lists_;
  Packet packet_;
  PackedUpdate latest_;
  PairSizes counts_;
  std::int64_t observed_ = 0;
  bool latest_docs_outgrow_ = false;
  TrainingExtent latest_extent_ = TrainingExtent::kHistory;
  PairSizes bucket_;
  std::int64_t moves_ = 0;

  IndexedPairs pairs_;
  GrowingArray<PairObservation> observations_;
  ResidentSample sample_;

  // For LambdaRank.
  DeviceArray<double> discounts_;
  GrowingArray<std::int64_t> doc_numbers_;
  GrowingArray<std::int32_t> group_offsets_;
  GrowingArray<std::int32_t> group_items_;
  GrowingArray<std::int32_t> first_doc_;
  GrowingArray<std::int32_t> first_pair_;
  GrowingArray<std::int32_t> examined_;
  GrowingArray<std::uint8_t> clicks_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
