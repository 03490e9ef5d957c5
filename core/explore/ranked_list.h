#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace olrank {

/// `first` is certainly ranked before `second`; docs of one query.
struct CertainOrder {
  std::int32_t first = 0;
  std::int32_t second = 0;

  friend bool operator==(const CertainOrder&, const CertainOrder&) = default;
};

/// How probable it is, to the ranker, that `first` is better than `second`: at least ½.
struct StatedOrder {
  std::int32_t first = 0;
  std::int32_t second = 0;
  double probability = 0.5;
};

/// Counts of a list's certain orders and blocks, for rankers that know certain orders.
struct ListCertainty {
  /// The ranks, from 1, at which the size of the block is kept.
  static constexpr std::array<std::int64_t, 24> kBlockRanks = {
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 35, 40, 50, 60, 80, 100, 150, 200, 300, 400};

  std::int64_t shown_pairs = 0;                               // k(k−1)/2
  std::int64_t certain_pairs = 0;                             // certain orders among them
  std::int64_t blocks = 0;                                    // in the whole list
  std::array<std::int64_t, kBlockRanks.size()> block_size{};  // at each of kBlockRanks; 0 beyond the list
};

/// These figures say what fairness between groups did to a list.
struct ListFairness {
  std::optional<std::int64_t> violated;  // certain orders, by the whole list; none without certain orders
  bool realisable = true;                // whether a list within ε existed, where one was looked for
};

/// A count out of a total.
struct Tally {
  std::int64_t count = 0;
  std::int64_t total = 0;
};

/// The list that a ranker shows. Spans stay valid until the next call to the ranker.
struct RankedList {
  std::span<const std::int32_t> docs;  // all of the query's, best first
  std::optional<ListCertainty> certainty;
  /// Each rank has the probability with which the draws of this round put its document there, given those
  /// above it: the product over a list's ranks is that of the list. Empty where it has no closed form.
  std::span<const double> propensity = {};
  std::span<const CertainOrder> certain_orders = {};  // among the shown documents
  /// Each pair of the shown documents once, for rankers that state probabilities.
  std::span<const StatedOrder> stated_orders = {};
  /// Own width over exact full width of the shown pairs; empty unless the ranker keeps a shadow covariance.
  std::span<const double> width_ratios = {};
  /// Decisions on shown pairs, certain or not, that exact widths would reverse, out of all of them; for
  /// rankers that keep a shadow covariance.
  Tally turned_decisions = {};
  std::optional<ListFairness> fairness = std::nullopt;  // of queries with groups
};

}  // namespace olrank
