#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/pair_training.h"
#include "core/random/rng_stream.h"
#include "models/neural/document_history.h"

namespace olrank {

/// Some documents of a history, each once, in the order of their first use. Where the history keeps whole
/// lists, a document comes with all documents of its list.
class GatheredDocs {
 public:
  /// Without `features`, documents are only named.
  explicit GatheredDocs(bool features = true) : gathers_features_(features) {}

  /// Starts without documents, to be filled from `history`.
  void start(const DocumentHistory& history);
  /// The place of the document in this row of the history.
  std::int32_t place_of(std::int32_t row);

  FeatureMatrix features() const { return {values_.data(), std::ssize(rows_), columns_, list_ends_}; }
  /// Rows in the history.
  std::span<const std::int32_t> rows() const { return rows_; }
  /// Numbers within the training part.
  std::span<const std::int64_t> doc_numbers() const { return doc_numbers_; }

 private:
  void take(std::int32_t row);

  bool gathers_features_;
  const DocumentHistory* history_ = nullptr;
  std::int64_t columns_ = 0;
  std::vector<float> values_;  // [rows × columns]
  std::vector<std::int64_t> list_ends_;
  std::vector<std::int32_t> rows_;
  std::vector<std::int64_t> doc_numbers_;
  std::vector<std::int32_t> places_;  // [docs of the history], −1 for those that are not here
};

/// Pairs of a history with their documents gathered, to train on these alone.
class TrainingSample {
 public:
  /// Without `features`, for a trainer that has them elsewhere, documents are only named.
  explicit TrainingSample(bool features = true) : docs_(features) {}

  /// The round's own pairs with weight 1, and `replay` pairs drawn with replacement from the n − k others,
  /// each with weight (n − k)/replay, so that the expected gradient is that of the whole history. Where no
  /// more than `replay` others are there, all of them. A pair that is drawn stands for the mean of its
  /// repetitions; with lists, for itself, with its list.
  void draw(const DocumentHistory& history, PhiloxKey key, std::uint32_t round, std::int64_t replay);
  /// How the latest round changed the history: its own pairs.
  void take_changes(const DocumentHistory& history);

  FeatureMatrix features() const { return docs_.features(); }
  /// The documents' rows in the history, in order of their first use.
  std::span<const std::int32_t> rows() const { return docs_.rows(); }
  /// Their numbers within the training part.
  std::span<const std::int64_t> doc_numbers() const { return docs_.doc_numbers(); }
  std::span<const PairTerm> terms() const { return terms_; }  // of rows of features()
  /// The sources go by term; a history with lists has none.
  std::span<const SampledTerm> sources() const { return sources_; }
  /// The sampled pairs with their lists, and how much each counts. Empty if the history has no lists.
  PairLists lists() const { return {lists_, list_rows_, list_clicks_, pairs_, doc_numbers()}; }
  std::span<const double> scales() const { return scales_; }

 private:
  /// An observed pair by its number, and how much it counts.
  struct CountedPair {
    std::int64_t number = 0;
    double scale = 0.0;
  };

  void start(const DocumentHistory& history);
  /// The place of a term in sources() or terms().
  std::size_t local_term(std::int32_t term);
  void take_own();
  void draw_terms(PhiloxKey key, std::uint32_t round, std::int64_t replay);
  void weigh_others(SampledTerm& source) const;
  void draw_pairs(PhiloxKey key, std::uint32_t round, std::int64_t replay);
  void fold_sources();
  /// Takes pairs, by number, with their lists.
  void take_pairs(std::span<const CountedPair> counted);

  GatheredDocs docs_;
  const DocumentHistory* history_ = nullptr;
  std::vector<PairTerm> terms_;
  std::vector<SampledTerm> sources_;
  std::vector<std::int32_t> term_numbers_;  // of the history
  std::vector<ExaminedList> lists_;
  std::vector<std::int32_t> list_rows_;
  std::vector<std::uint8_t> list_clicks_;
  std::vector<PairObservation> pairs_;
  std::vector<double> scales_;
  std::vector<CountedPair> counted_;
  std::vector<std::int64_t> draws_;       // of each term
  std::vector<std::int32_t> local_term_;  // [terms of the history], −1 for those not in the sample
};

}  // namespace olrank
