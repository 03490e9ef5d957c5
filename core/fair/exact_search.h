#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/fair/fair_swap.h"
#include "core/fair/templates.h"

namespace olrank {

/// The fewest certain orders that a list of a template can violate, and lists that violate no more.
///
/// Documents behind the template's places can always follow the scores, which violates nothing. So the cost
/// of a list is, for each of its first k documents, what is certainly before it and not placed yet. A
/// document x dominates y of its group if all that is certainly before x is so before y, and all that is
/// certainly after y is so after x: exchanging the two never costs more where y comes first. Dynamic
/// programming over places therefore takes a document only after all that dominate it; its state is the set
/// of documents taken, which for orders by blocks is no more than the count of each group.
class ExactSearch {
 public:
  /// Documents that a search tries before it gives up. Enough for the orders of real rankers at k = 10;
  /// with orders at random the sets are too many.
  static constexpr std::int64_t kMostSteps = 2'000'000;

  explicit ExactSearch(PhiloxKey key) : key_(key) {}

  /// For the query that `swap` is prepared for.
  void prepare(const OrderBits& orders, const FairSwap& swap, std::uint32_t round);

  /// The least cost of a template that can be realised, if it is at most `bound`. None if it is not, or if
  /// the search gave up, as gave_up() says.
  std::optional<std::int64_t> least_violated(TemplatePattern pattern, int length, std::int64_t bound);
  bool gave_up() const { return steps_ > kMostSteps; }

  /// A list of the template that violates exactly `violated` orders, the least: place by place, the first
  /// document in a random order that still allows it; then the others by score. False if the search gave
  /// up.
  bool draw_list(TemplatePattern pattern, int length, std::int64_t violated,
                 std::vector<std::int32_t>& list);

 private:
  struct State {
    std::array<std::int32_t, TemplateTable::kMostPlaces> taken;  // sorted
    int size = 0;
    std::int64_t cost = 0;
  };

  std::int64_t cost_of(const State& state, std::int32_t place) const;
  bool may_take(const State& state, std::int32_t place) const;
  static State with(const State& state, std::int32_t place, std::int64_t cost);
  /// The least cost from a state on, if it is at most `bound`.
  std::optional<std::int64_t> finish(const State& from, TemplatePattern pattern, int length,
                                     std::int64_t bound);

  PhiloxKey key_;
  std::uint32_t round_ = 0;
  const OrderBits* before_ = nullptr;
  std::vector<std::int32_t> before_count_;           // by place
  OrderBits dominators_;                             // row y: what dominates y
  std::vector<std::int32_t> dominator_count_;        // by place
  std::array<std::vector<std::int32_t>, 2> firsts_;  // places with few dominators, by group
  std::array<std::vector<std::int32_t>, 2> all_;     // places by group, by coin
  std::vector<State> states_;
  std::vector<State> next_;
  std::int64_t steps_ = 0;
};

}  // namespace olrank
