#include "core/explore/certain_orders.h"

#include <cassert>
#include <cmath>

namespace olrank {
namespace {

inline bool clears_width(const CertaintyRule& rule, double difference, double width_sq) {
  if (!(difference > rule.least_difference)) return false;
  // σ(z) − ½ ≤ z/4 for z ≥ 0: most uncertain orders fall here, without a root or an exponential.
  const double room = 0.25 * difference - rule.slack;
  const double width_term_sq = rule.alpha * rule.alpha * width_sq;
  if (!(room > 0.0) || !(room * room > width_term_sq)) return false;
  // σ(z) − ½ = tanh(z/2)/2, without the cancellation at small z.
  return 0.5 * std::tanh(0.5 * difference) - rule.slack > std::sqrt(width_term_sq);
}

}  // namespace

bool is_certain(const CertaintyRule& rule, double difference, double width_sq) {
  return clears_width(rule, difference, width_sq);
}

void certain_by_width(const CertaintyRule& rule, std::span<const float> scores,
                      std::span<const std::int32_t> by_score, std::span<const double> width_sq,
                      OrderBits& orders) {
  const auto docs = static_cast<std::int64_t>(by_score.size());
  assert(width_sq.size() == static_cast<std::size_t>(docs * docs));
  orders.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    const std::int32_t i = by_score[static_cast<std::size_t>(a)];
    const double score = scores[static_cast<std::size_t>(i)];
    const double* row = width_sq.data() + std::int64_t{i} * docs;
    for (std::int64_t b = a + 1; b < docs; ++b) {
      const std::int32_t j = by_score[static_cast<std::size_t>(b)];
      const double difference = score - scores[static_cast<std::size_t>(j)];
      if (clears_width(rule, difference, row[j])) orders.set(a, b);
    }
  }
}

void certain_by_vote(std::int64_t members, double least_difference, std::span<const float> scores,
                     std::span<const std::int32_t> by_score, OrderBits& orders) {
  const auto docs = static_cast<std::int64_t>(by_score.size());
  assert(scores.size() == static_cast<std::size_t>(members * docs));
  orders.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    const std::int32_t i = by_score[static_cast<std::size_t>(a)];
    for (std::int64_t b = a + 1; b < docs; ++b) {
      const std::int32_t j = by_score[static_cast<std::size_t>(b)];
      bool all = true;
      for (std::int64_t member = 0; member < members && all; ++member) {
        const float* of_doc = scores.data() + member * docs;
        all = double{of_doc[i]} - double{of_doc[j]} > least_difference;
      }
      if (all) orders.set(a, b);
    }
  }
}

void close_transitively(OrderBits& orders) {
  // From the bottom up every row below is closed already, and orders only lead downwards.
  for (std::int64_t a = orders.docs() - 1; a >= 0; --a) {
    const auto row = orders.row(a);
    for (std::size_t word = 0; word < row.size(); ++word) {
      // Bits that closing adds need no visit: what they lead to came with them.
      for (std::uint64_t left = row[word]; left != 0; left &= left - 1) {
        const auto below =
            orders.row(static_cast<std::int64_t>(word) * OrderBits::kWordBits + std::countr_zero(left));
        for (std::size_t later = word; later < row.size(); ++later) row[later] |= below[later];
      }
    }
  }
}

}  // namespace olrank
