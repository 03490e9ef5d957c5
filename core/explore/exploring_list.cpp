#include "core/explore/exploring_list.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

namespace olrank {
namespace {

/// The last place after a that is not certainly below it, or a if there is none.
std::int64_t last_uncertain(const OrderBits& orders, std::int64_t a) {
  const auto row = orders.row(a);
  for (auto word = std::ssize(row) - 1; word >= a / OrderBits::kWordBits; --word) {
    const std::int64_t first = word * OrderBits::kWordBits;
    std::uint64_t uncertain = ~row[word];
    const std::int64_t behind = orders.docs() - first;
    if (behind < OrderBits::kWordBits) uncertain &= (std::uint64_t{1} << behind) - 1;
    if (uncertain != 0) {
      return std::max(a, first + OrderBits::kWordBits - 1 - std::countl_zero(uncertain));
    }
  }
  return a;
}

constexpr std::int64_t kWordBits = OrderBits::kWordBits;

}  // namespace

void find_blocks(const OrderBits& orders, std::vector<std::int32_t>& ends) {
  ends.clear();
  std::int64_t reach = 0;
  for (std::int64_t a = 0; a < orders.docs(); ++a) {
    reach = std::max(reach, last_uncertain(orders, a));
    if (reach == a) {
      ends.push_back(static_cast<std::int32_t>(a + 1));
      reach = a + 1;
    }
  }
}

void ExploringList::shuffle_blocks(std::span<const std::int32_t> by_score, std::uint32_t round) {
  std::int32_t begin = 0;
  for (const std::int32_t end : block_ends_) {
    shuffled_.clear();
    for (std::int32_t place = begin; place < end; ++place) {
      RngStream coins(key_, round, static_cast<std::uint32_t>(by_score[place]));
      const std::uint64_t high = coins.next_bits();
      shuffled_.push_back({high << 32 | coins.next_bits(), place});
    }
    std::sort(shuffled_.begin(), shuffled_.end(), [](const Shuffled& a, const Shuffled& b) {
      return a.coin < b.coin || (a.coin == b.coin && a.place < b.place);
    });
    for (const Shuffled& next : shuffled_) {
      places_.push_back(next.place);
      propensity_.push_back(1.0 / static_cast<double>(end - std::ssize(places_) + 1));
    }
    begin = end;
  }
}

void ExploringList::order_topologically(const OrderBits& orders, std::uint32_t round) {
  const std::int64_t docs = orders.docs();
  available_.reset(orders, 0, docs);
  for (std::int64_t rank = 0; rank < docs; ++rank) {
    RngStream coins(key_, round, 0, static_cast<std::uint32_t>(rank));
    const auto choices = static_cast<std::uint32_t>(available_.count());
    places_.push_back(static_cast<std::int32_t>(available_.take(choices == 1 ? 0 : coins.index(choices))));
    propensity_.push_back(1.0 / static_cast<double>(choices));
  }
}

ListCertainty ExploringList::certainty(std::span<const std::int32_t> by_score, const OrderBits& orders,
                                       std::int64_t cutoff) {
  ListCertainty certainty;
  certain_orders_.clear();
  const std::int64_t shown = std::min(cutoff, orders.docs());
  certainty.shown_pairs = shown * (shown - 1) / 2;
  for (std::int64_t rank = 0; rank < shown; ++rank) {
    for (std::int64_t below = rank + 1; below < shown; ++below) {
      const auto [first, second] = std::minmax(places_[rank], places_[below]);
      if (!orders.certain(first, second)) continue;
      certain_orders_.push_back({by_score[first], by_score[second]});
    }
  }
  certainty.certain_pairs = std::ssize(certain_orders_);
  certainty.blocks = std::ssize(block_ends_);
  // Each document of a block is certainly before all documents of later blocks, so every list of certain
  // orders that is not made fair keeps the blocks in order, and rank r lies in the block of place r.
  for (std::size_t i = 0; i < ListCertainty::kBlockRanks.size(); ++i) {
    const std::int64_t place = ListCertainty::kBlockRanks[i] - 1;
    if (place >= orders.docs()) continue;
    const auto end = std::upper_bound(block_ends_.begin(), block_ends_.end(), place);
    certainty.block_size[i] = *end - (end == block_ends_.begin() ? 0 : *(end - 1));
  }
  return certainty;
}

void ExploringList::arrange(std::span<const std::int32_t> by_score, const OrderBits& given,
                            std::uint32_t round) {
  assert(given.docs() == std::ssize(by_score));
  if (refine_) {
    closed_ = given;
    close_transitively(closed_);
  }
  const OrderBits& orders = followed(given);
  find_blocks(orders, block_ends_);
  places_.clear();
  propensity_.clear();
  switch (rule_) {
    case ListRule::kGreedy:
      places_.resize(by_score.size());
      std::iota(places_.begin(), places_.end(), 0);
      propensity_.assign(places_.size(), 1.0);
      break;
    // Blocks follow from certain orders, so that a list that agrees with all of them keeps the blocks.
    case ListRule::kCertain:
    case ListRule::kBlocksCertain:
      order_topologically(orders, round);
      break;
    case ListRule::kBlocks:
      shuffle_blocks(by_score, round);
      break;
  }
}

void ExploringList::arrange_blocks(std::span<const std::int32_t> by_score,
                                   std::span<const std::int32_t> block_ends, std::uint32_t round) {
  block_ends_.assign(block_ends.begin(), block_ends.end());
  places_.clear();
  propensity_.clear();
  shuffle_blocks(by_score, round);
}

void ExploringList::arrange_as(std::span<const std::int32_t> by_score, const OrderBits& orders,
                               std::span<const std::int32_t> list, std::span<const double> propensity) {
  propensity_.assign(propensity.begin(), propensity.end());
  find_blocks(orders, block_ends_);
  list_.resize(by_score.size());
  for (std::size_t place = 0; place < by_score.size(); ++place)
    list_[by_score[place]] = static_cast<std::int32_t>(place);
  places_.clear();
  for (const std::int32_t doc : list) places_.push_back(list_[doc]);
}

RankedList ExploringList::finish(std::span<const std::int32_t> by_score, const OrderBits& given,
                                 std::int64_t cutoff) {
  list_.clear();
  for (const std::int32_t place : places_) list_.push_back(by_score[place]);
  const ListCertainty known = certainty(by_score, given, cutoff);
  RankedList list{list_, known};
  list.propensity = propensity_;
  list.certain_orders = certain_orders_;
  return list;
}

void AvailablePlaces::reset(const OrderBits& orders, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = end - begin;
  count_ = 0;
  if (rows == 0) return;
  const std::int64_t first_word = begin / kWordBits;
  first_place_ = first_word * kWordBits;
  words_ = OrderBits::words(end) - first_word;
  first_leaf_ = rows - (begin - first_place_);
  // The bits of the interval.
  available_.assign(words_, ~std::uint64_t{0});
  available_.front() <<= begin - first_place_;
  available_.back() &= ~std::uint64_t{0} >> (first_place_ + words_ * kWordBits - end);
  nodes_.resize(2 * rows * words_);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = orders.row(begin + i).subspan(first_word, words_);
    const auto leaf = node(rows + i);
    for (std::int64_t word = 0; word < words_; ++word) leaf[word] = row[word] & available_[word];
  }
  for (std::int64_t i = rows - 1; i > 0; --i) {
    const auto left = node(2 * i);
    const auto right = node(2 * i + 1);
    const auto both = node(i);
    for (std::int64_t word = 0; word < words_; ++word) both[word] = left[word] | right[word];
  }
  for (std::int64_t word = 0; word < words_; ++word) {
    available_[word] &= ~node(1)[word];
    count_ += std::popcount(available_[word]);
  }
}

std::int64_t AvailablePlaces::take(std::int64_t n) {
  assert(n >= 0 && n < count_);
  std::int64_t word = 0;
  for (int here = 0; n >= (here = std::popcount(available_[word])); ++word) n -= here;
  std::uint64_t left = available_[word];
  for (; n > 0; --n) left &= left - 1;
  available_[word] &= ~(left & -left);
  --count_;
  const std::int64_t place = first_place_ + word * kWordBits + std::countr_zero(left);
  remove_row(place);
  return place;
}

void AvailablePlaces::remove_row(std::int64_t place) {
  // A row has bits of later places only.
  for (std::int64_t word = (place - first_place_) / kWordBits; word < words_; ++word) {
    const std::uint64_t before = node(1)[word];
    std::int64_t i = first_leaf_ + place - first_place_;
    std::uint64_t bits = 0;
    while (node(i)[word] != bits) {
      node(i)[word] = bits;
      if (i == 1) break;
      bits |= node(i ^ 1)[word];
      i /= 2;
    }
    const std::uint64_t freed = before & ~node(1)[word];
    if (freed == 0) continue;
    available_[word] |= freed;
    count_ += std::popcount(freed);
  }
}

const Schema& ExplorationSettings::schema() {
  using S = ExplorationSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "When an order counts as certain, and how uncertain orders are explored.")
          .field("alpha", &S::alpha, "an order is certain if its margin exceeds alpha × width", {0})
          .symbol("α")
          .field("alpha_schedule", &S::alpha_schedule,
                 "constant α, or the theoretical α_t computed from log det A")
          .field("c1", &S::c1, "first coefficient of the theoretical α_t", {0})
          .symbol("c₁")
          .field("c2", &S::c2, "second coefficient of the theoretical α_t", {0})
          .symbol("c₂")
          .field("delta", &S::delta,
                 "failure probability of the theoretical α_t; for clickgp, an order is certain from the "
                 "probability 1 − delta on",
                 above(0, 1))
          .symbol("δ")
          .field("list", &S::list,
                 "how the shown list is built from scores and certain orders; `blocks-certain` gives the "
                 "lists of `certain`")
          .field("refine", &S::refine,
                 "take the transitive closure of the certain orders before forming blocks")
          .build();
  return schema;
}

}  // namespace olrank
