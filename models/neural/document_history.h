#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/feedback/preference_pairs.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "core/ops/pair_training.h"

namespace olrank {

/// An examined list: its documents and its pairs, each one after another.
struct ExaminedList {
  std::int64_t first_doc = 0;
  std::int64_t first_pair = 0;
  std::int32_t docs = 0;
  std::int32_t pairs = 0;
};

/// Observed pairs with the lists that they came from, which LambdaRank needs.
struct PairLists {
  std::span<const ExaminedList> lists;
  std::span<const std::int32_t> rows;    // of the lists' documents
  std::span<const std::uint8_t> clicks;  // on them
  std::span<const PairObservation> pairs;
  std::span<const std::int64_t> doc_numbers;  // by row
};

/// |ΔNDCG| of each pair: of swapping its two documents in the order that `scores`, by row, give to the
/// documents of its list, clicks being the labels. Burges, "From RankNet to LambdaRank to LambdaMART: an
/// overview", 2010, §4.
void ndcg_changes(const PairLists& lists, std::span<const float> scores, std::vector<double>& changes);

/// The terms with each observed pair weighted.
void fold_pairs(std::span<const PairTerm> terms, std::span<const PairObservation> pairs,
                std::span<const double> weights, std::vector<PairTerm>& weighted);

/// A history keeps these beside its documents and the folded pairs between them.
struct HistoryContent {
  bool lists = false;   // the examined list that each pair came from: LambdaRank, losses of lists
  bool pairs = true;    // every observed pair, in order
  bool counts = false;  // how often each pair was observed, so that one can be drawn
  std::int64_t examined_after = 1;  // as PairSettings
  // Whole lists, for models whose scores depend on the other documents.
  bool whole_lists = false;
};

/// Every preference so far, for networks: the distinct documents, each with its features once, and the
/// pairs between them, repetitions folded. The cost of a pass is that of its documents, so a round stops
/// getting slower once queries repeat. With whole lists, it keeps all documents of a query together, once
/// for each distinct set of documents, and a document of two lists is two documents.
class DocumentHistory : public Stateful {
 public:
  DocumentHistory(std::int64_t features, const HistoryContent& content);
  DocumentHistory(std::int64_t features, bool lists)
      : DocumentHistory(features, HistoryContent{.lists = lists}) {}

  /// Adds pairs of the same weight.
  void add(const Feedback& feedback, std::span<const PreferencePair> pairs, double weight = 1.0);

  std::int64_t observed() const { return observed_; }  // n, with repetitions
  std::int64_t docs() const { return std::ssize(doc_numbers_); }
  FeatureMatrix features() const { return {values_.data(), docs(), features_, list_ends_}; }
  /// Where each whole list ends; empty where none are kept.
  std::span<const std::int64_t> list_ends() const { return list_ends_; }
  /// `weight` is the total weight of a term's pairs, `labels` that of the pairs which the first document
  /// won.
  std::span<const PairTerm> terms() const { return terms_; }
  RetrainingSchedule::Sizes sizes() const { return {observed_, std::ssize(terms_)}; }
  const HistoryContent& content() const { return content_; }

  /// Whether the last add() brought documents that outgrow all before them.
  bool latest_docs_outgrow() const { return latest_docs_outgrow_; }
  /// A round without pairs brings no documents.
  void end_round() { latest_docs_outgrow_ = false; }
  /// The pairs of the last add(), and the weight of each.
  std::span<const PairObservation> latest() const { return latest_; }
  double latest_weight() const { return latest_weight_; }

  /// The observed pairs but for the latest, by term: how many in all, how many of a term, and the term of
  /// each number below. Needs counts.
  std::int64_t others() const { return others_.total(); }
  std::int64_t others_of(std::int32_t term) const { return count_[term]; }
  std::int32_t term_of_other(std::int64_t number) const {
    return static_cast<std::int32_t>(others_.item_at(number));
  }

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
  /// Returns the examined lists with the pairs.
  PairLists pair_lists() const;
  /// Documents and clicks of the last list.
  std::span<const std::int32_t> latest_rows() const;
  std::span<const std::uint8_t> latest_clicks() const;

  void fields(StateFields& state) override;

 private:
  /// A query's documents by their numbers, in any order.
  using ListKey = std::pair<std::uint64_t, std::uint64_t>;
  static ListKey key_of(std::vector<std::int64_t> numbers);

  std::int32_t row_of(const QueryDocs& query, std::int32_t doc);
  std::int32_t row_in_list(const QueryDocs& query, std::int32_t doc);
  void append_doc(const QueryDocs& query, std::int32_t doc);
  std::int32_t term_of(std::int32_t first, std::int32_t second);
  void note_sizes(std::int64_t first_row);
  /// Counts the latest pairs as others.
  void settle();
  void rebuild_indices();

  std::int64_t features_;
  HistoryContent content_;
  std::int64_t observed_ = 0;
  double largest_doc_ = 0.0;  // ‖x‖²
  bool latest_docs_outgrow_ = false;
  std::vector<float> values_;  // [docs × features]
  Lineage values_lineage_;
  std::vector<std::int64_t> doc_numbers_;  // within the training part
  std::vector<std::int64_t> list_ends_;    // of whole lists
  std::vector<PairTerm> terms_;            // first < second by document number
  std::vector<std::int64_t> count_;        // of a term's pairs but for the latest
  CountTree others_;                       // the same
  std::vector<ExaminedList> lists_;
  std::vector<std::int32_t> list_rows_;
  std::vector<std::uint8_t> list_clicks_;
  std::vector<PairObservation> observations_;
  std::vector<PairObservation> latest_;
  double latest_weight_ = 1.0;
  std::unordered_map<std::int64_t, std::int32_t> row_of_;  // without whole lists
  std::map<ListKey, std::int64_t> list_of_;                // with them
  // The rows of the list that pairs are being added of, by document number.
  std::vector<std::pair<std::int64_t, std::int32_t>> rows_by_number_;
  std::unordered_map<std::uint64_t, std::int32_t> term_of_;  // of two rows, packed
};

}  // namespace olrank
