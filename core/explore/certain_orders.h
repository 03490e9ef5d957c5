#pragma once

#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/math/pair_loss.h"
#include "core/math/portable_exp.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// The certain orders of one query: bit (a, b) is set if the document at place a of the order by score is
/// certainly before the one at place b. Certain orders agree with the scores, so a < b for every set bit.
/// Memory is reused from query to query.
class OrderBits {
 public:
  static constexpr std::int64_t kWordBits = 64;

  /// Words of a row.
  static constexpr std::int64_t words(std::int64_t docs) { return (docs + kWordBits - 1) / kWordBits; }

  void reset(std::int64_t docs) {
    docs_ = docs;
    words_ = words(docs);
    bits_.assign(docs * words_, 0);
  }

  /// Rows as a device wrote them, [docs × ⌈docs/64⌉].
  void assign(std::int64_t docs, std::span<const std::uint64_t> bits) {
    docs_ = docs;
    words_ = words(docs);
    assert(std::ssize(bits) == docs_ * words_);
    bits_.assign(bits.begin(), bits.end());
  }

  std::int64_t docs() const { return docs_; }
  void set(std::int64_t a, std::int64_t b) {
    assert(a < b && b < docs_);
    row(a)[b / kWordBits] |= std::uint64_t{1} << (b % kWordBits);
  }
  bool certain(std::int64_t a, std::int64_t b) const {
    return (row(a)[b / kWordBits] >> (b % kWordBits) & 1U) != 0;
  }
  std::span<std::uint64_t> row(std::int64_t a) { return std::span(bits_).subspan(a * words_, words_); }
  std::span<const std::uint64_t> row(std::int64_t a) const {
    return std::span(bits_).subspan(a * words_, words_);
  }

  /// Calls visit(b), in ascending order, for every place b that a is certainly before.
  template <class Visit>
  void for_each_below(std::int64_t a, Visit&& visit) const {
    const auto words = row(a);
    for (std::size_t word = 0; word < words.size(); ++word) {
      for (std::uint64_t left = words[word]; left != 0; left &= left - 1) {
        visit(static_cast<std::int64_t>(word) * kWordBits + std::countr_zero(left));
      }
    }
  }

 private:
  std::int64_t docs_ = 0;
  std::int64_t words_ = 0;  // of a row
  std::vector<std::uint64_t> bits_;
};

/// The certain orders by is_certain(). `by_score` are docs, best first; `width_sq` is w², [V × V] by docs.
void certain_by_width(const CertaintyRule& rule, std::span<const float> scores,
                      std::span<const std::int32_t> by_score, std::span<const double> width_sq,
                      OrderBits& orders);

/// i before j iff every member scores i above j by more than `least_difference`. `scores` is
/// [members × V], without NaN; `by_score` follows their mean.
void certain_by_vote(std::int64_t members, double least_difference, std::span<const float> scores,
                     std::span<const std::int32_t> by_score, OrderBits& orders, Scratch& scratch);

/// Adds a before c wherever a is before b and b before c.
void close_transitively(OrderBits& orders);

/// α_t = c₁(√(ν² log(det A/(δ² det λI))) + √λ c₂): Jia and Wang, "Learning neural ranking models online
/// from implicit user feedback", WWW 2022.
struct TheoryAlpha {
  /// ν: clicks lie in [0, 1], so their noise is ½-sub-Gaussian.
  static constexpr double kClickNoise = 0.5;

  double c1 = 1.0;
  double c2 = 1.0;
  double delta = 0.1;
  double lambda = 1.0;

  OLRANK_HOST_DEVICE double at(double log_det) const {
    const double log_ratio = log_det - 2.0 * std::log(delta);
    return c1 * (kClickNoise * std::sqrt(log_ratio) + std::sqrt(lambda) * c2);
  }
};

/// How a ranker decides which orders are certain: all of a CertaintyRule but what changes from round to
/// round.
struct CertaintyPolicy {
  double alpha = 0.0;                 // α
  std::optional<TheoryAlpha> theory;  // gives α instead, if set

  /// `log_det` is log(det A/det λI) of the covariance; score differences up to `least_difference` are
  /// rounding.
  CertaintyRule rule(double log_det, double least_difference) const {
    return {theory ? theory->at(log_det) : alpha, least_difference};
  }
};

}  // namespace olrank
