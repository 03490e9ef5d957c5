#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Takes the documents of an interval of places one by one, each after all that are certainly before it. A
/// place is available if no document that is still to be taken is certainly before its own. The orders of
/// those are rows of bits at the leaves of a tree, whose nodes are the union of what is below them: O(log V
/// · V/64) per document, however many orders are certain. Memory is reused.
class AvailablePlaces {
 public:
  /// All of the places [begin, end) are still to be taken.
  void reset(const OrderBits& orders, std::int64_t begin, std::int64_t end);

  /// It is at least 1 until all places are taken.
  std::int64_t count() const { return count_; }
  /// Takes the n-th available place, from 0, and returns it.
  std::int64_t take(std::int64_t n);

 private:
  std::span<std::uint64_t> node(std::int64_t i) { return std::span(nodes_).subspan(i * words_, words_); }
  /// Empties the row of a place that is taken.
  void remove_row(std::int64_t place);

  std::int64_t first_place_ = 0;  // that the bits count from
  std::int64_t words_ = 0;        // of a row
  std::int64_t first_leaf_ = 0;   // the node that would be first_place_'s
  std::int64_t count_ = 0;
  std::vector<std::uint64_t> available_;
  std::vector<std::uint64_t> nodes_;  // the root is 1, the children of i are 2i and 2i + 1, then the rows
};

/// How a list is built from scores and certain orders.
enum class ListRule { kCertain, kBlocks, kBlocksCertain, kGreedy };
enum class AlphaSchedule { kConstant, kTheory };

/// When an order counts as certain, and how uncertain orders are explored.
struct ExplorationSettings {
  double alpha = 0.1;
  AlphaSchedule alpha_schedule = AlphaSchedule::kConstant;
  double c1 = 1.0;
  double c2 = 1.0;
  double delta = 0.1;
  ListRule list = ListRule::kCertain;
  bool refine = false;

  static const Schema& schema();
};

template <>
struct EnumNames<ListRule> {
  static constexpr std::array values =
      names_in_order<ListRule>("certain", "blocks", "blocks-certain", "greedy");
};

template <>
struct EnumNames<AlphaSchedule> {
  static constexpr std::array values = names_in_order<AlphaSchedule>("constant", "theory");
};

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

/// Splits the order by score into blocks, with a cut after place c where no uncertain pair straddles it.
/// `ends` receives the end of each block. Blocks are the connected components of uncertain pairs, merged
/// where certain orders between two components point both ways. O(V²/64).
void find_blocks(const OrderBits& orders, std::vector<std::int32_t>& ends);

/// Builds the shown list from certain orders. Draws are keyed by (round, document) or (round, rank), so
/// that compared rankers see the same draws. Memory is reused from list to list.
class ExploringList {
 public:
  /// `key` is the trial's key of Purpose::kList.
  ExploringList(ListRule rule, bool refine, PhiloxKey key) : rule_(rule), refine_(refine), key_(key) {}

  /// `by_score` are docs, best first. Where `refine` is set, blocks and list follow the transitive closure
  /// of `orders`; certain pairs are counted in `orders` itself. The list is valid until the next call.
  RankedList make(std::span<const std::int32_t> by_score, const OrderBits& orders, std::uint32_t round,
                  std::int64_t cutoff) {
    arrange(by_score, orders, round);
    return finish(by_score, orders, cutoff);
  }

  // The two halves of make(): between them, places() may be put into another order.

  /// Blocks and list, by place.
  void arrange(std::span<const std::int32_t> by_score, const OrderBits& orders, std::uint32_t round);
  /// Arranges a partition that is given: each block is shuffled.
  void arrange_blocks(std::span<const std::int32_t> by_score, std::span<const std::int32_t> block_ends,
                      std::uint32_t round);
  /// Arranges a list that is given: documents in the order in which they are to be shown, with the
  /// propensity of each, if that is known.
  void arrange_as(std::span<const std::int32_t> by_score, const OrderBits& orders,
                  std::span<const std::int32_t> list, std::span<const double> propensity);
  RankedList finish(std::span<const std::int32_t> by_score, const OrderBits& orders, std::int64_t cutoff);

  std::vector<std::int32_t>& places() { return places_; }
  /// The order of places() is no longer the drawn one.
  void forget_propensity() { propensity_.clear(); }
  std::span<const std::int32_t> block_ends() const { return block_ends_; }
  /// The orders that blocks and list follow: those given, or their closure.
  const OrderBits& followed(const OrderBits& orders) const { return refine_ ? closed_ : orders; }
  /// Whether documents of a block come in any order, certain or not.
  bool shuffles_blocks() const { return rule_ == ListRule::kBlocks; }

 private:
  struct Shuffled {
    std::uint64_t coin;
    std::int32_t place;
  };

  void shuffle_blocks(std::span<const std::int32_t> by_score, std::uint32_t round);
  void order_topologically(const OrderBits& orders, std::uint32_t round);
  /// Counts certain pairs and records the certain orders among the shown documents.
  ListCertainty certainty(std::span<const std::int32_t> by_score, const OrderBits& orders,
                          std::int64_t cutoff);

  ListRule rule_;
  bool refine_;
  PhiloxKey key_;
  OrderBits closed_;
  std::vector<std::int32_t> block_ends_;
  std::vector<std::int32_t> places_;  // of the order by score, in the order of the list
  std::vector<std::int32_t> list_;    // docs
  std::vector<double> propensity_;    // of each rank; empty: unknown
  std::vector<CertainOrder> certain_orders_;
  std::vector<Shuffled> shuffled_;
  AvailablePlaces available_;
};

}  // namespace olrank
