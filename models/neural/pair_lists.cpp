#include "models/neural/pair_lists.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "core/math/dcg.h"
#include "core/math/score_order.h"

namespace olrank {

void ndcg_changes(const PairLists& lists, std::span<const float> scores, std::vector<double>& changes) {
  changes.resize(lists.pairs.size());
  std::vector<std::int32_t> order;
  std::vector<double> discount_of;
  for (const ExaminedList& list : lists.lists) {
    const auto rows = lists.rows.subspan(list.first_doc, list.docs);
    const auto clicks = lists.clicks.subspan(list.first_doc, rows.size());
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), 0);
    const auto score_at = [&](std::int32_t place) { return scores[rows[place]]; };
    // Ties break by document.
    const auto number_at = [&](std::int32_t place) { return lists.doc_numbers[rows[place]]; };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return comes_before(score_at(a), number_at(a), score_at(b), number_at(b));
    });
    discount_of.resize(rows.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      discount_of[order[rank]] = dcg_discount(static_cast<std::int64_t>(rank), Discount::kLog2);
    }
    double ideal = 0.0;
    std::int64_t clicked = 0;
    for (const std::uint8_t click : clicks) {
      if (click != 0) ideal += kClickGain * dcg_discount(clicked++, Discount::kLog2);
    }
    for (std::int64_t pair = list.first_pair; pair < list.first_pair + list.pairs; ++pair) {
      const PairObservation& seen = lists.pairs[pair];
      changes[pair] = ndcg_change(kClickGain, discount_of[seen.winner], discount_of[seen.loser], ideal);
    }
  }
}

void fold_pairs(std::span<const PairTerm> terms, std::span<const PairObservation> pairs,
                std::span<const double> weights, std::vector<PairTerm>& weighted) {
  assert(weights.size() == pairs.size());
  weighted.assign(terms.begin(), terms.end());
  for (PairTerm& term : weighted) term.weight = term.labels = 0.0;
  for (std::size_t at = 0; at < pairs.size(); ++at) {
    PairTerm& term = weighted[pairs[at].term];
    term.weight += weights[at];
    if (pairs[at].first_wins != 0) term.labels += weights[at];
  }
}

}  // namespace olrank
