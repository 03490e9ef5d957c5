#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/exploration_settings.h"
#include "core/explore/exploring_list.h"
#include "core/explore/order_bits.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Certain orders and the list made from them, wherever the orders were found.
class CertainList {
 public:
  /// `list_key` is of Purpose::kList.
  CertainList(const ExplorationSettings& settings, PhiloxKey list_key, std::int64_t cutoff)
      : cutoff_(cutoff), list_(settings.list, settings.refine, list_key) {}

  /// By place in the order by score; set before make().
  OrderBits& orders() { return orders_; }
  const OrderBits& orders() const { return orders_; }

  /// `by_score` are the documents, best first. The list stays valid until the next call.
  RankedList make(std::span<const std::int32_t> by_score, std::uint32_t round) {
    return list_.make(by_score, orders_, round, cutoff_);
  }
  /// The documents of the list that are shown.
  std::span<const std::int32_t> shown(const RankedList& list) const;

  /// The orders by document: 1 where row i is certainly before column j.
  void write_matrix(std::span<const std::int32_t> by_score, std::vector<std::uint8_t>& matrix) const;

 private:
  std::int64_t cutoff_;
  ExploringList list_;
  OrderBits orders_;
};

}  // namespace olrank
