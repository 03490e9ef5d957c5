#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/fair/exposure.h"
#include "models/skeleton/belief.h"

namespace olrank {

/// FairCo on certain orders: those of scores that proportional control has raised. Widths and votes stay as
/// they are.
class ControlledOrders {
 public:
  void find(ExecutionContext& context, const CertaintyPolicy& policy, const Belief& belief,
            const Evidence& evidence, const FairRound& fair, double gain);

  std::span<const std::int32_t> by_score() const { return by_score_; }
  const OrderBits& orders() const { return orders_; }

 private:
  std::vector<float> scores_;
  std::vector<float> member_scores_;
  std::vector<std::int32_t> by_score_;
  OrderBits orders_;
};

}  // namespace olrank
