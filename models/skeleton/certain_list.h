#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/explore/exploration_settings.h"
#include "core/explore/exploring_list.h"
#include "core/explore/order_bits.h"
#include "core/explore/posterior_order.h"
#include "core/fair/exposure.h"
#include "core/fair/fair_list.h"
#include "core/fair/fair_settings.h"
#include "core/fair/violated_orders.h"
#include "core/online/frozen_ranker.h"
#include "core/online/trial_keys.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Certain orders and the list made from them, wherever the orders were found; with groups, a list that is
/// made fair, or whose fairness is measured.
class CertainList {
 public:
  CertainList(const ExplorationSettings& settings, const FairSettings& fair, const TrialKeys& keys,
              std::int64_t cutoff);

  /// For a list that is made ahead of its round.
  static CertainList of(const RankingTask& task, ExplorationSettings settings, const FairSettings& fair,
                        const TrialKeys& keys);
  /// Such a list with its orders, which move.
  void hand_over(const RankedList& made, Ranking& ranking);

  /// By place in the order by score; set before make().
  OrderBits& orders() { return orders_; }
  const OrderBits& orders() const { return orders_; }

  /// `by_score` are the documents, best first; `fair` may be null. The list stays valid until the next
  /// call.
  RankedList make(std::span<const std::int32_t> by_score, std::uint32_t round, const FairRound* fair);
  /// The same by the rule of the settings, where that may follow the scores' posterior. Beliefs without
  /// widths have no such rule.
  RankedList make_explored(std::span<const std::int32_t> by_score, const ScoreBelief& belief,
                           std::uint32_t round, const FairRound* fair);
  /// The same with blocks that are given.
  RankedList make_of_blocks(std::span<const std::int32_t> by_score,
                            std::span<const std::int32_t> block_ends, std::uint32_t round,
                            const FairRound* fair);
  /// The same of a list that is given, unless it has to be fair.
  RankedList make_of_list(std::span<const std::int32_t> by_score, std::span<const std::int32_t> list,
                          std::span<const double> propensity, std::uint32_t round, const FairRound* fair);
  /// Of other scores and orders, as proportional control has them: what they violate is counted in
  /// orders().
  RankedList make_controlled(std::span<const std::int32_t> by_score,
                             std::span<const std::int32_t> controlled_by_score,
                             const OrderBits& controlled_orders, std::uint32_t round);
  /// The same with blocks that are given, which are shuffled.
  RankedList make_controlled_blocks(std::span<const std::int32_t> by_score,
                                    std::span<const std::int32_t> controlled_by_score,
                                    std::span<const std::int32_t> controlled_ends, std::uint32_t round);

  /// The documents of the list that are shown.
  std::span<const std::int32_t> shown(const RankedList& list) const;

  /// The orders by document: 1 where row i is certainly before column j.
  void write_matrix(std::span<const std::int32_t> by_score, std::vector<std::uint8_t>& matrix) const;

 private:
  RankedList finish(std::span<const std::int32_t> by_score, bool uniform, std::uint32_t round,
                    const FairRound* fair);
  /// With what the documents' order violates.
  RankedList with_violated(RankedList list, std::span<const std::int32_t> by_score);

  std::int64_t cutoff_;
  ExploringList list_;
  std::optional<FairList> fair_list_;              // with FairExp
  std::optional<PosteriorOrder> posterior_order_;  // where the list follows the posterior
  OrderBits orders_;
  std::vector<std::int32_t> fair_places_;
  std::vector<std::int32_t> place_of_;
  std::vector<std::uint64_t> placed_;
};

}  // namespace olrank
