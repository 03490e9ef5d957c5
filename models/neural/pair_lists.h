#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace olrank
