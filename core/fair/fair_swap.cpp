#include "core/fair/fair_swap.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <tuple>
#include <utility>

namespace olrank {
namespace {

constexpr std::int64_t kWord = OrderBits::kWordBits;

void set_bit(std::span<std::uint64_t> bits, std::int64_t place) {
  bits[place / kWord] |= std::uint64_t{1} << place % kWord;
}

std::int64_t ones(std::span<const std::uint64_t> bits) {
  std::int64_t count = 0;
  for (const std::uint64_t word : bits) count += std::popcount(word);
  return count;
}

/// Transposes 64 × 64 bits in place: Warren, "Hacker's Delight", 2nd edition, Section 7-3, for bits that
/// count from the lowest.
void transpose_words(std::array<std::uint64_t, 64>& rows) {
  std::uint64_t mask = 0x00000000FFFFFFFFULL;
  for (unsigned width = 32; width != 0; width >>= 1, mask ^= mask << width) {
    for (unsigned row = 0; row < 64; row = ((row | width) + 1) & ~width) {
      const std::uint64_t swapped = ((rows[row] >> width) ^ rows[row | width]) & mask;
      rows[row] ^= swapped << width;
      rows[row | width] ^= swapped;
    }
  }
}

}  // namespace

void FairSwap::prepare(const GroupedBlocks& blocks, std::uint32_t round) {
  draw_coins(blocks, round);
  transpose(*blocks.orders, before_);
  count_unswapped(blocks);
}

void FairSwap::draw_coins(const GroupedBlocks& blocks, std::uint32_t round) {
  const std::int64_t docs = std::ssize(blocks.by_score);
  assert(blocks.block_ends.empty() ? docs == 0 : blocks.block_ends.back() == docs);
  assert(std::ssize(blocks.list) == docs);
  coins_.clear();
  group_.resize(docs);
  block_of_.resize(docs);
  for (std::int32_t block = 0, place = 0; block < std::ssize(blocks.block_ends); ++block) {
    for (; place < blocks.block_ends[block]; ++place) block_of_[place] = block;
  }
  for (std::size_t rank = 0; rank < blocks.list.size(); ++rank) {
    const std::int32_t place = blocks.list[rank];
    const std::int32_t doc = blocks.by_score[place];
    group_[place] = blocks.groups[doc];
    Coins coins{block_of_[place], place, rank, rank};
    if (blocks.uniform) {
      RngStream stream(key_, round, static_cast<std::uint32_t>(doc));
      for (std::uint64_t* coin : {&coins.fetch, &coins.inside}) {
        *coin = std::uint64_t{stream.next_bits()} << 32;
        *coin |= stream.next_bits();
      }
    }
    coins_.push_back(coins);
  }

  for (Group& group : groups_) {
    group.by_fetch.clear();
    group.by_place.clear();
    group.ends.clear();
  }
  std::ranges::sort(coins_, {},
                    [](const Coins& one) { return std::tuple(one.block, one.fetch, one.place); });
  fetch_index_.resize(docs);
  for (const Coins& coins : coins_) {
    Group& group = of(group_[coins.place]);
    fetch_index_[coins.place] = static_cast<std::int32_t>(group.by_fetch.size());
    group.by_fetch.push_back(coins.place);
  }
  std::ranges::sort(coins_, {},
                    [](const Coins& one) { return std::tuple(one.block, one.inside, one.place); });
  unswapped_.clear();
  std::size_t next = 0;
  for (std::int32_t block = 0; block < std::ssize(blocks.block_ends); ++block) {
    for (; next < coins_.size() && coins_[next].block == block; ++next) {
      unswapped_.push_back(coins_[next].place);
      of(group_[coins_[next].place]).by_place.push_back(coins_[next].place);
    }
    for (Group& group : groups_) group.ends.push_back(static_cast<std::int32_t>(group.by_place.size()));
  }
  // Documents of several blocks can end up in one.
  std::ranges::sort(coins_, {}, [](const Coins& one) { return std::pair(one.inside, one.place); });
  coin_rank_.resize(docs);
  for (std::uint32_t rank = 0; rank < coins_.size(); ++rank) coin_rank_[coins_[rank].place] = rank;
}

/// Blocks in order violate certain orders only inside a block.
void FairSwap::count_unswapped(const GroupedBlocks& blocks) {
  const std::int64_t docs = std::ssize(unswapped_);
  const std::int64_t words = OrderBits::words(docs);
  broken_.reset(docs);
  broken_count_.assign(docs, 0);
  placed_.resize(2 * words);
  const auto earlier = std::span(placed_).first(words);
  const auto later = std::span(placed_).subspan(words, words);
  std::int64_t twice = 0;
  std::int32_t begin = 0;
  for (const std::int32_t end : blocks.block_ends) {
    if (end - begin > 1) {
      std::fill(placed_.begin(), placed_.end(), 0);
      for (std::int32_t place = begin; place < end; ++place) set_bit(later, place);
      for (std::int32_t next = begin; next < end; ++next) {
        const std::int32_t place = unswapped_[next];
        later[place / kWord] &= ~(std::uint64_t{1} << place % kWord);
        const auto after = blocks.orders->row(place);
        const auto before = before_.row(place);
        const auto broken = broken_.row(place);
        for (std::int64_t word = begin / kWord; word <= (end - 1) / kWord; ++word)
          broken[word] = (after[word] & earlier[word]) | (before[word] & later[word]);
        broken_count_[place] = static_cast<std::int32_t>(ones(broken));
        twice += broken_count_[place];
        set_bit(earlier, place);
      }
    }
    begin = end;
  }
  unswapped_violated_ = twice / 2;
  placed_.resize(words);
}

void FairSwap::hold(DocGroup which, std::int64_t block, int most, Holding& holding) const {
  const Group& group = of(which);
  const std::int32_t begin = block == 0 ? 0 : group.ends[block - 1];
  const std::int32_t end = group.ends[block];
  holding.count = std::max(0, end - std::max(begin, group.fetched));
  holding.kept = 0;
  if (holding.count == 0) return;
  for (std::int32_t next = begin; next < end && holding.kept < most; ++next) {
    const std::int32_t place = group.by_place[next];
    if (fetch_index_[place] >= group.fetched) holding.places[holding.kept++] = place;
  }
}

/// Fills the template's places with a block, and with the blocks that leave it.
void FairSwap::place_block(TemplatePattern pattern, int length, std::int64_t block, Holding (&held)[2]) {
  while (head_size_ < length && held[0].count + held[1].count > 0) {
    const int places =
        static_cast<int>(std::min<std::int64_t>(held[0].count + held[1].count, length - head_size_));
    const TemplatePattern segment = pattern >> head_size_ & ((TemplatePattern{1} << places) - 1);
    const int for_a = std::popcount(segment);
    const int needed[2] = {for_a, places - for_a};
    Holding leaving[2];
    for (const DocGroup which : {DocGroup::kA, DocGroup::kB}) {
      const auto one = static_cast<std::size_t>(which);
      const auto missing = static_cast<int>(needed[one] - held[one].count);
      if (missing <= 0) continue;
      // From the nearest later blocks that have any.
      Group& group = of(which);
      const std::int32_t first = std::max(group.fetched, group.ends[block]);
      assert(first + missing <= std::ssize(group.by_fetch));
      for (int next = 0; next < missing; ++next) {
        const std::int32_t place = group.by_fetch[first + next];
        int at = held[one].kept++;
        for (; at > 0 && coin_rank_[held[one].places[at - 1]] > coin_rank_[place]; --at)
          held[one].places[at] = held[one].places[at - 1];
        held[one].places[at] = place;
      }
      held[one].count += missing;
      group.fetched = first + missing;
      // As many of the other group leave: those that would come last.
      Holding& others = held[1 - one];
      Holding& left = leaving[1 - one];
      others.count -= missing;
      left.count = missing;
      for (int next = static_cast<int>(others.count); next < others.kept; ++next)
        left.places[left.kept++] = others.places[next];
      others.kept = std::min(others.kept, static_cast<int>(others.count));
    }
    int taken[2] = {0, 0};
    for (int place = 0; place < places; ++place) {
      const std::size_t one = (segment >> place & 1U) != 0 ? 0 : 1;
      assert(taken[one] < held[one].kept);
      head_[head_size_++] = held[one].places[taken[one]++];
    }
    held[0] = leaving[0];
    held[1] = leaving[1];
  }
}

std::int64_t FairSwap::swap(TemplatePattern pattern, int length) {
  assert(length <= TemplateTable::kMostPlaces && can_realise(pattern, length));
  head_size_ = 0;
  for (Group& group : groups_) group.fetched = 0;
  const auto blocks = std::ssize(groups_[0].ends);
  Holding held[2];
  for (std::int64_t block = 0; block < blocks && head_size_ < length; ++block) {
    const int most = length - head_size_;
    hold(DocGroup::kA, block, most, held[0]);
    hold(DocGroup::kB, block, most, held[1]);
    place_block(pattern, length, block, held);
  }
  assert(head_size_ == length);
  return count_violated_by_list();
}

/// The head violates what is certainly before its places and not placed yet; what is behind it violates as
/// the list that is not swapped, without the head.
std::int64_t FairSwap::count_violated_by_list() {
  std::fill(placed_.begin(), placed_.end(), 0);
  std::int64_t count = 0;
  for (const std::int32_t place : head()) {
    const auto row = before_.row(place);
    for (std::size_t word = 0; word < row.size(); ++word)
      count += std::popcount(row[word] & ~placed_[word]);
    set_bit(placed_, place);
  }
  std::int64_t behind = unswapped_violated_;
  if (behind == 0) return count;
  std::int64_t twice_inside = 0;
  for (const std::int32_t place : head()) {
    if (broken_count_[place] == 0) continue;
    behind -= broken_count_[place];
    const auto row = broken_.row(place);
    for (std::size_t word = 0; word < row.size(); ++word)
      twice_inside += std::popcount(row[word] & placed_[word]);
  }
  return count + behind + twice_inside / 2;
}

void FairSwap::write_list(std::vector<std::int32_t>& list) const {
  list.assign(head().begin(), head().end());
  for (const std::int32_t place : unswapped_) {
    if ((placed_[place / kWord] >> place % kWord & 1U) == 0) list.push_back(place);
  }
}

void transpose(const OrderBits& orders, OrderBits& columns) {
  constexpr std::int64_t kSide = OrderBits::kWordBits;
  const std::int64_t docs = orders.docs();
  columns.reset(docs);
  std::array<std::uint64_t, kSide> tile;
  for (std::int64_t first_row = 0; first_row < docs; first_row += kSide) {
    const std::int64_t rows = std::min(kSide, docs - first_row);
    for (std::int64_t word = first_row / kSide; word < OrderBits::words(docs); ++word) {
      tile.fill(0);
      for (std::int64_t row = 0; row < rows; ++row) tile[row] = orders.row(first_row + row)[word];
      transpose_words(tile);
      const std::int64_t first_column = word * kSide;
      const std::int64_t behind = std::min(kSide, docs - first_column);
      for (std::int64_t column = 0; column < behind; ++column)
        columns.row(first_column + column)[first_row / kSide] = tile[column];
    }
  }
}

std::int64_t count_violated(const OrderBits& orders, std::span<const std::int32_t> list,
                            std::vector<std::uint64_t>& placed) {
  placed.assign(OrderBits::words(orders.docs()), 0);
  std::int64_t violated = 0;
  for (const std::int32_t place : list) {
    const auto row = orders.row(place);
    for (std::size_t word = 0; word < row.size(); ++word)
      violated += std::popcount(row[word] & placed[word]);
    set_bit(placed, place);
  }
  return violated;
}

}  // namespace olrank
