#pragma once

#include <cstdint>
#include <span>

#include "core/explore/order_bits.h"

namespace olrank {

/// An order is certain if its margin exceeds α × width + ε.
struct CertaintyRule {
  double alpha = 0.0;             // α
  double slack = 0.0;             // ε ≥ 0
  double least_difference = 0.0;  // score differences up to it are rounding
};

/// Whether two documents with this difference of scores and this w² are certainly ordered.
bool is_certain(const CertaintyRule& rule, double difference, double width_sq);

/// i before j iff σ(f_i − f_j) − α w_ij − ε > ½: "Learning neural ranking models online from implicit user
/// feedback", WWW 2022, Lemma 3.3. `by_score` are docs, best first; `width_sq` is w², [V × V] by docs.
void certain_by_width(const CertaintyRule& rule, std::span<const float> scores,
                      std::span<const std::int32_t> by_score, std::span<const double> width_sq,
                      OrderBits& orders);

/// i before j iff every member scores i above j by more than `least_difference`. `scores` is
/// [members × V]; `by_score` follows their mean.
void certain_by_vote(std::int64_t members, double least_difference, std::span<const float> scores,
                     std::span<const std::int32_t> by_score, OrderBits& orders);

/// a before b and b before c make a before c.
void close_transitively(OrderBits& orders);

}  // namespace olrank
