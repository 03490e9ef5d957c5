#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/fair/exposure.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Lists are made of a query's documents by score, in blocks whose inner order is uncertain, with their
/// groups. Documents are named by their place in the order by score.
struct GroupedBlocks {
  std::span<const std::int32_t> by_score;    // docs, best first
  std::span<const std::int32_t> block_ends;  // the place after each block
  const OrderBits* orders = nullptr;         // certain orders, by place
  std::span<const DocGroup> groups;          // by document
  /// The list that the ranker would show without groups, by places: its blocks in order.
  std::span<const std::int32_t> list;
  /// Whether that list is uniformly random inside a block, as in the paper. Else it keeps orders there, and
  /// documents are fetched and placed in its order.
  bool uniform = true;
};

/// FairSwap: the list of a template that moves as few documents between blocks as it can. Jia, "Toward
/// Reliable Decision-making in Information Systems", PhD thesis, University of Virginia, 2022, Algorithm 4,
/// with its line 9 up to and including the last block. Where a block has too few documents of a group for
/// its places, documents are fetched from the nearest later blocks at random, and as many of the other
/// group leave for a block of their own directly behind.
///
/// In uniform blocks, documents have two coins of a round, one for being fetched and one for their place
/// inside a block; they are the same for every template, so that templates are compared on equal draws.
/// Deviation: a ranker whose list keeps the certain orders inside blocks, too, has its documents fetched
/// and placed in the order of that list, which is as random as its orders allow. Preparing is O(V log V +
/// V²/64); a template then costs O(k + V·k/64): what is behind its places is the same list without them.
class FairSwap {
 public:
  /// `key` is the trial's key of Purpose::kTemplate.
  explicit FairSwap(PhiloxKey key) : key_(key) {}

  /// `blocks` have to stay as they are until the last call about them.
  void prepare(const GroupedBlocks& blocks, std::uint32_t round);

  std::int64_t docs() const { return std::ssize(unswapped_); }
  std::int64_t docs_of(DocGroup group) const { return std::ssize(of(group).by_fetch); }
  /// Whether the query has the documents for a template.
  bool can_realise(TemplatePattern pattern, int length) const {
    const int for_a = TemplateTable::needed_of_a(pattern);
    return for_a <= docs_of(DocGroup::kA) && length - for_a <= docs_of(DocGroup::kB);
  }
  /// Finds the list of a template that can be realised. Returns the certain orders that the whole list
  /// violates.
  std::int64_t swap(TemplatePattern pattern, int length);
  /// The places of the list found last: the template's, and then all of the query's.
  std::span<const std::int32_t> head() const {
    return {head_.data(), static_cast<std::size_t>(head_size_)};
  }
  void write_list(std::vector<std::int32_t>& list) const;

  /// Rows of the transposed orders: what is certainly before a place.
  const OrderBits& before() const { return before_; }
  /// A document's rank in the order in which a block places its documents.
  std::uint32_t coin_rank(std::int32_t place) const { return coin_rank_[place]; }
  DocGroup group_of(std::int32_t place) const { return group_[place]; }

 private:
  struct Group {
    std::vector<std::int32_t> by_fetch;  // places by (block, coin for being fetched)
    std::vector<std::int32_t> by_place;  // places by (block, coin for the place inside)
    std::vector<std::int32_t> ends;      // after each block, in both
    std::int32_t fetched = 0;            // end of what has been fetched of by_fetch
  };
  /// Documents of one group that a block holds, by their coins: as many as the template may still place.
  struct Holding {
    std::array<std::int32_t, TemplateTable::kMostPlaces> places;
    int kept = 0;            // of places
    std::int64_t count = 0;  // of all
  };

  const Group& of(DocGroup group) const { return groups_[static_cast<std::size_t>(group)]; }
  Group& of(DocGroup group) { return groups_[static_cast<std::size_t>(group)]; }
  void draw_coins(const GroupedBlocks& blocks, std::uint32_t round);
  void count_unswapped(const GroupedBlocks& blocks);
  void hold(DocGroup group, std::int64_t block, int most, Holding& holding) const;
  void place_block(TemplatePattern pattern, int length, std::int64_t block, Holding (&held)[2]);
  std::int64_t count_violated_by_list();

  PhiloxKey key_;
  std::vector<DocGroup> group_;            // by place
  std::vector<std::uint32_t> coin_rank_;   // by place
  std::vector<std::int32_t> fetch_index_;  // by place, in its group's by_fetch
  std::array<Group, 2> groups_;
  std::vector<std::int32_t> unswapped_;  // all places: blocks in order, and inside by coins
  std::int64_t unswapped_violated_ = 0;  // by that list
  OrderBits before_;
  OrderBits broken_;                        // violated orders of that list, both ways
  std::vector<std::int32_t> broken_count_;  // by place
  std::array<std::int32_t, TemplateTable::kMostPlaces> head_{};
  int head_size_ = 0;
  std::vector<std::uint64_t> placed_;

  struct Coins {
    std::int32_t block;
    std::int32_t place;
    std::uint64_t fetch;
    std::uint64_t inside;
  };
  std::vector<Coins> coins_;
  std::vector<std::int32_t> block_of_;  // by place
};

/// Bit (b, a) of `columns` is set where place a is certainly before place b: the orders transposed.
void transpose(const OrderBits& orders, OrderBits& columns);

/// The certain orders that a list violates: those whose second place comes before the first. `list` has
/// places of the order by score.
std::int64_t count_violated(const OrderBits& orders, std::span<const std::int32_t> list,
                            std::vector<std::uint64_t>& placed);

}  // namespace olrank
