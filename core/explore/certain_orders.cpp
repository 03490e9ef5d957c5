#include "core/explore/certain_orders.h"

#include <algorithm>

namespace olrank {
namespace {

/// Sets row a's bits to is_set(b) for all b > a, a word at a time.
template <class IsSet>
void fill_row(OrderBits& orders, std::int64_t a, const IsSet& is_set) {
  const auto row = orders.row(a);
  for (std::int64_t word = a / OrderBits::kWordBits; word < std::ssize(row); ++word) {
    const std::int64_t first = word * OrderBits::kWordBits;
    const std::int64_t end = std::min(first + OrderBits::kWordBits, orders.docs());
    std::uint64_t bits = 0;
    for (std::int64_t b = std::max(first, a + 1); b < end; ++b)
      bits |= std::uint64_t{is_set(b)} << (b - first);
    row[word] = bits;
  }
}

}  // namespace

void certain_by_width(const CertaintyRule& rule, std::span<const float> scores,
                      std::span<const std::int32_t> by_score, std::span<const double> width_sq,
                      OrderBits& orders) {
  const auto docs = std::ssize(by_score);
  assert(std::ssize(width_sq) == docs * docs);
  orders.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    const std::int32_t i = by_score[a];
    const double score = scores[i];
    const double* row = width_sq.data() + std::int64_t{i} * docs;
    fill_row(orders, a, [&](std::int64_t b) {
      const std::int32_t j = by_score[b];
      return is_certain(rule, score - double{scores[j]}, row[j]);
    });
  }
}

void certain_by_vote(std::int64_t members, double least_difference, std::span<const float> scores,
                     std::span<const std::int32_t> by_score, OrderBits& orders, Scratch& scratch) {
  const auto docs = std::ssize(by_score);
  assert(std::ssize(scores) == members * docs);
  orders.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) fill_row(orders, a, [](std::int64_t) { return true; });
  struct Placed {
    float score;
    std::int64_t place;
  };
  const Scratch::Frame frame(scratch);
  const auto placed = scratch.take<Placed>(docs);
  const auto not_below = scratch.take<std::uint64_t>(OrderBits::words(docs));
  for (std::int64_t member = 0; member < members; ++member) {
    for (std::int64_t place = 0; place < docs; ++place)
      placed[place] = {scores[member * docs + by_score[place]], place};
    std::sort(placed.begin(), placed.end(),
              [](const Placed& a, const Placed& b) { return a.score > b.score; });
    // As scores fall, a document gets votes over fewer others.
    std::fill(not_below.begin(), not_below.end(), 0);
    auto next = placed.begin();
    for (const Placed& one : placed) {
      for (; next != placed.end() && !votes_for_first(one.score, next->score, least_difference); ++next)
        not_below[next->place / OrderBits::kWordBits] |= std::uint64_t{1}
                                                         << next->place % OrderBits::kWordBits;
      const auto row = orders.row(one.place);
      for (std::size_t word = 0; word < row.size(); ++word) row[word] &= ~not_below[word];
    }
  }
}

void close_transitively(OrderBits& orders) {
  // Orders only point to later places, and going backwards all later rows are already closed.
  for (std::int64_t a = orders.docs() - 1; a >= 0; --a) {
    const auto row = orders.row(a);
    for (std::size_t word = 0; word < row.size(); ++word) {
      // A document that a visit adds or finds set needs no visit: its own successors were added with it.
      for (std::uint64_t left = row[word]; left != 0; left &= left - 1) {
        const auto below =
            orders.row(static_cast<std::int64_t>(word) * OrderBits::kWordBits + std::countr_zero(left));
        for (std::size_t later = word; later < row.size(); ++later) row[later] |= below[later];
        left &= ~below[word];
      }
    }
  }
}

}  // namespace olrank
