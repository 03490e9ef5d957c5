#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/fair/exposure.h"
#include "core/fair/fair_swap.h"
#include "core/fair/many_groups.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

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

  /// Prepares for the query that `swap` is prepared for.
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
    std::array<std::int32_t, TemplateTable::kMostPlaces> taken{};  // sorted, then zeros
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

/// How a ranker keeps the exposure of groups in balance.
enum class Fairness { kNone, kFairExp, kFairCo };
/// How FairExp finds the list of a template.
enum class TemplateSearch { kFairSwap, kExact };

/// The settings say what a ranker does about the groups of [groups].
struct FairSettings {
  Fairness fair = Fairness::kNone;
  TemplateSearch template_search = TemplateSearch::kFairSwap;
  double fair_gain = 0.01;  // λ_c

  static const Schema& schema();
};

/// Throws InvalidArgument for settings of a ranker that know no more than two groups.
void check_group_count(const FairSettings& settings, std::size_t groups, std::string_view ranker);

template <>
struct EnumNames<Fairness> {
  static constexpr std::array values = names_in_order<Fairness>("none", "fairexp", "fairco");
};

template <>
struct EnumNames<TemplateSearch> {
  static constexpr std::array values = names_in_order<TemplateSearch>("fairswap", "exact");
};

/// FairExp: among the templates whose list keeps |UF_t| ≤ ε, the one whose list violates the fewest certain
/// orders. Jia, "Toward Reliable Decision-making in Information Systems", PhD thesis, University of
/// Virginia, 2022, Algorithm 3, lines 3 and 6 to 10. It takes blocks, certain orders and groups from any
/// ranker and knows none. Where the query has the documents for no such template, those of the least |UF_t|
/// take their place (Section 3.1). Ties go to the smaller |UF_t|, then to a coin. More than two groups have
/// ManyGroups.
class FairList {
 public:
  using Choice = FairChoice;

  /// `key` is the trial's key of Purpose::kTemplate.
  FairList(TemplateSearch search, PhiloxKey key)
      : search_(search), key_(key), swap_(key), exact_(key), many_(key) {}

  /// Writes the list of places, of which `cutoff` will be seen. `cutoff` is at most
  /// TemplateTable::kMostPlaces.
  Choice make(const GroupedBlocks& blocks, const FairRound& fair, std::uint32_t round, std::int64_t cutoff,
              std::vector<std::int32_t>& list);

 private:
  const TemplateTable& table_of(const ExposureRule& rule, int length);
  /// Candidates are the templates that can be realised and keep within ε, or else are closest to it.
  bool find_candidates(const TemplateTable& table, const FairRound& fair);
  Choice choose_by_swaps(const TemplateTable& table, const FairRound& fair, std::uint32_t round);
  Choice choose_exactly(const TemplateTable& table, const FairRound& fair, std::uint32_t round, Choice best,
                        std::vector<std::int32_t>& list);

  TemplateSearch search_;
  PhiloxKey key_;
  FairSwap swap_;
  ExactSearch exact_;
  ManyGroups many_;
  ExposureRule rule_;  // that the tables are of
  std::array<std::optional<TemplateTable>, TemplateTable::kMostPlaces + 1> tables_;
  std::vector<TemplatePattern> candidates_;
};

}  // namespace olrank
