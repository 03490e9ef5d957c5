#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/available_places.h"
#include "core/explore/exploration_settings.h"
#include "core/explore/order_bits.h"
#include "core/explore/ranked_list.h"
#include "core/random/rng_stream.h"

namespace olrank {

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

  void shuffle_block(std::int64_t begin, std::int64_t end, std::span<const std::int32_t> by_score,
                     std::uint32_t round);
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
