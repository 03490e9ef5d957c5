#pragma once

#include <cstdint>
#include <span>

#include "core/data/feature_matrix.h"
#include "core/explore/certain_orders.h"
#include "core/online/preference_pair.h"
#include "core/online/retraining.h"
#include "core/ops/pair_training.h"
#include "core/ops/sampled_term.h"

// Host and device exchange these types in a round.
namespace olrank {

/// A query of the training part, or one whose documents are handed over.
struct DeviceQuery {
  std::int64_t first_doc = 0;  // within the training part
  std::int64_t docs = 0;
  const float* handed = nullptr;  // [docs × d], read during the call; null: of the training part
  std::uint64_t there = 0;        // DeviceDocs::number(), where these lie on the device; 0: on the host

  friend bool operator==(const DeviceQuery&, const DeviceQuery&) = default;
};

/// The orders of a query's documents; valid until the next call.
struct DeviceOrders {
  std::span<const std::int32_t> by_score;  // docs, best first
  std::span<const std::uint64_t> certain;  // rows of an OrderBits
};

/// A list is made from these scores of a query among several; they are valid until the next call.
struct DeviceScores {
  DeviceOrders orders;
  std::span<const float> scores;  // [docs], of an ensemble their means
  std::int32_t bad = -1;          // document whose score is not a number
  std::int64_t lost = 0;          // squared widths that rounding destroyed
};

/// The scores and widths that decided about the shown documents, and their exact widths by the shadow;
/// valid until the next call.
struct DeviceComparison {
  CertaintyRule rule;
  std::span<const double> scores;    // [shown]
  std::span<const double> own_sq;    // w², [shown × shown]
  std::span<const double> exact_sq;  // w² by the shadow, [shown × shown]
};

/// The pairs that a round trains on in the place of the whole history.
struct DeviceSample {
  std::span<const std::int64_t> docs;  // rows of the history
  std::span<const PairTerm> terms;     // of their places in `docs`; weights and labels come from `sources`
  std::span<const SampledTerm> sources;
};

/// An update is what a round adds to the history and what it then trains on. The host keeps the index of
/// documents and pairs, and draws samples.
struct DeviceUpdate {
  struct Term {
    std::int32_t index = 0;
    PairTerm term;
  };

  std::uint32_t round = 0;
  /// In which round the noise of labels was drawn: this one where the whole history is trained on.
  std::uint32_t noise_round = 0;
  TrainingExtent extent = TrainingExtent::kHistory;
  /// [members × p]: where a training on the whole history starts; empty: at the current parameters.
  std::span<const float> start;
  DeviceSample sample;  // for kSample
  DeviceQuery query;
  std::span<const PreferencePair> pairs;
  std::int64_t observed = 0;               // n, these pairs included
  std::span<const std::int64_t> new_docs;  // numbers within the training part, or places in a handed query
  bool docs_outgrow = false;               // whether they make κ stale, see core/math/step_size.h
  std::span<const Term> terms;             // new and changed ones
  std::span<const PairObservation> observations;  // for mini-batches and LambdaRank
  /// For mini-batches: the numbers of all observations, shuffled for each epoch of each member.
  std::span<const std::int32_t> order;
  // For LambdaRank:
  std::span<const std::int64_t> doc_numbers;  // that name the new documents
  std::span<const std::int32_t> examined;     // rows of the history, in the order shown
  std::span<const std::uint8_t> clicks;
};

/// A whole history, to resume from.
struct DeviceHistory {
  FeatureMatrix docs;  // the distinct ones
  std::span<const PairTerm> terms;
  std::int64_t observed = 0;
  std::span<const PairObservation> observations;  // for mini-batches and LambdaRank
  // For LambdaRank:
  std::span<const std::int64_t> doc_numbers;
  std::span<const std::int32_t> first_doc;   // [lists + 1], into `examined`
  std::span<const std::int32_t> first_pair;  // [lists + 1], into `observations`
  std::span<const std::int32_t> examined;
  std::span<const std::uint8_t> clicks;
};

/// The numerical health of the covariance, and its memory.
struct DeviceHealth {
  double drift = 0.0;
  std::int64_t negative_widths = 0;
  std::int64_t bytes = 0;         // of the covariance
  std::int64_t device_bytes = 0;  // of everything on the device
};

}  // namespace olrank
