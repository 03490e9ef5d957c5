#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/state_archive.h"
#include "core/online/feedback.h"
#include "core/online/online_ranker.h"
#include "core/ops/pair_training.h"

namespace olrank {

/// Every preference so far, for networks: the distinct documents, each with its features once, and the
/// pairs between them, repetitions folded. The cost of a pass is that of its documents, so a round stops
/// getting slower once queries repeat.
class DocumentHistory {
 public:
  /// With `impressions`, it also keeps the examined list that each pair came from, which LambdaRank needs.
  DocumentHistory(std::int64_t features, bool impressions)
      : features_(features), keeps_impressions_(impressions) {}

  /// Adds pairs of the same weight.
  void add(const Feedback& feedback, std::span<const PreferencePair> pairs, double weight = 1.0);

  std::int64_t observed() const { return observed_; }  // n, with repetitions
  std::int64_t docs() const { return std::ssize(doc_numbers_); }
  FeatureMatrix features() const { return {values_.data(), docs(), features_}; }
  /// `weight` is the total weight of a term's pairs, `labels` that of the pairs which the first document
  /// won.
  std::span<const PairTerm> terms() const { return terms_; }

  /// Whether the last add() brought documents that outgrow all before them.
  bool latest_docs_outgrow() const { return latest_docs_outgrow_; }

  std::span<const PairObservation> observations() const { return observations_; }

  /// Numbers of the distinct documents within the training part.
  std::span<const std::int64_t> doc_numbers() const { return doc_numbers_; }
  /// The examined lists: rows and clicks, list by list, and where each list and its pairs begin.
  struct Lists {
    std::vector<std::int32_t> first_doc;   // [lists + 1]
    std::vector<std::int32_t> first_pair;  // [lists + 1]
    std::span<const std::int32_t> rows;
    std::span<const std::uint8_t> clicks;
  };
  Lists lists() const;
  /// Documents and clicks of the last list.
  std::span<const std::int32_t> latest_rows() const;
  std::span<const std::uint8_t> latest_clicks() const;

  /// |ΔNDCG| of each observation: of swapping its two documents in the order that `scores` [docs()] give to
  /// the documents examined in its impression, clicks being the labels. Burges, "From RankNet to LambdaRank
  /// to LambdaMART: an overview", 2010, §4. Needs impressions.
  void ndcg_changes(std::span<const float> scores, std::vector<double>& changes) const;

  /// The terms with every observation weighted.
  void fold(std::span<const double> weights, std::vector<PairTerm>& weighted) const;

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  /// An examined list: documents rows_[first … first + count) with their clicks, and its pairs.
  struct Impression {
    std::int64_t first_doc = 0;
    std::int64_t first_pair = 0;
    std::int32_t docs = 0;
    std::int32_t pairs = 0;
  };
  std::int32_t row_of(const QueryDocs& query, std::int32_t doc);
  void note_sizes(std::int64_t first_row);
  std::int32_t term_of(std::int32_t first, std::int32_t second);
  void rebuild_indices();

  std::int64_t features_;
  bool keeps_impressions_;
  std::int64_t observed_ = 0;
  double largest_doc_ = 0.0;  // ‖x‖²
  bool latest_docs_outgrow_ = false;
  std::vector<float> values_;  // [docs × features]
  Lineage values_lineage_;
  std::vector<std::int64_t> doc_numbers_;  // within the training part
  std::vector<PairTerm> terms_;            // first < second by document number
  std::vector<Impression> impressions_;
  std::vector<std::int32_t> impression_rows_;
  std::vector<std::uint8_t> impression_clicks_;
  std::vector<PairObservation> observations_;
  std::unordered_map<std::int64_t, std::int32_t> row_of_;
  std::unordered_map<std::uint64_t, std::int32_t> term_of_;  // of two rows, packed
};

}  // namespace olrank
