#include "core/explore/certain_orders.h"

#include <cassert>

namespace olrank {

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
    for (std::int64_t b = a + 1; b < docs; ++b) {
      const std::int32_t j = by_score[b];
      const double difference = score - scores[j];
      if (is_certain(rule, difference, row[j])) orders.set(a, b);
    }
  }
}

void certain_by_vote(std::int64_t members, double least_difference, std::span<const float> scores,
                     std::span<const std::int32_t> by_score, OrderBits& orders) {
  const auto docs = std::ssize(by_score);
  assert(std::ssize(scores) == members * docs);
  orders.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    const std::int32_t i = by_score[a];
    for (std::int64_t b = a + 1; b < docs; ++b) {
      const std::int32_t j = by_score[b];
      bool all = true;
      for (std::int64_t member = 0; member < members && all; ++member) {
        const float* of_doc = scores.data() + member * docs;
        all = votes_for_first(of_doc[i], of_doc[j], least_difference);
      }
      if (all) orders.set(a, b);
    }
  }
}

void close_transitively(OrderBits& orders) {
  // Orders only point to later places, and going backwards all later rows are already closed.
  for (std::int64_t a = orders.docs() - 1; a >= 0; --a) {
    const auto row = orders.row(a);
    for (std::size_t word = 0; word < row.size(); ++word) {
      // Added bits need no visit: their own successors were added with them.
      for (std::uint64_t left = row[word]; left != 0; left &= left - 1) {
        const auto below =
            orders.row(static_cast<std::int64_t>(word) * OrderBits::kWordBits + std::countr_zero(left));
        for (std::size_t later = word; later < row.size(); ++later) row[later] |= below[later];
      }
    }
  }
}

}  // namespace olrank
