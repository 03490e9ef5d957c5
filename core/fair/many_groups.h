#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/fair/exposure.h"
#include "core/fair/fair_swap.h"

namespace olrank {

/// FairExp's choice among the G^k templates of more than two groups. A list of a template has at each place
/// the next document of its group in the order of the ranker's list, and then all others in that order; for
/// two groups this is FairSwap's list wherever documents are fetched in that order.
///
/// The orders that a place violates then depend on the template so far by the counts of the groups alone,
/// so that dynamic programming over counts gives the least violation that can follow. A search that goes
/// deeper place by place, the least violation first, leaves out every beginning after which no list could
/// be better than the best so far: by that violation, and because the groups that are behind would need
/// more exposure than is left. It is exact unless it takes more than kMostSteps.
class ManyGroups {
 public:
  /// Beginnings of templates that a search looks at before it gives up, with the best list so far.
  static constexpr std::int64_t kMostSteps = 200'000;

  /// `key` is the trial's key of Purpose::kTemplate.
  explicit ManyGroups(PhiloxKey key) : key_(key) {}

  /// Writes the list of places. `length` is at most TemplateTable::kMostPlaces and the documents' count.
  FairChoice choose(const GroupedBlocks& blocks, const FairRound& fair, std::uint32_t round, int length,
                    std::vector<std::int32_t>& list);

 private:
  static constexpr std::size_t kMostPlaces = TemplateTable::kMostPlaces;
  /// The beginning of a template.
  struct Beginning {
    std::array<std::uint8_t, kMostGroups> counts{};  // of places, by group
    int places = 0;
    PairFigures gain{};         // of unfairness
    std::int64_t violated = 0;  // more than the ranker's list violates
    TemplatePattern pattern = 0;
  };

  void prepare(const GroupedBlocks& blocks);
  bool has_next(const Beginning& beginning, std::size_t group) const {
    return beginning.counts[group] < std::ssize(docs_[group]);
  }
  /// Counts the orders that the group's next document violates.
  std::int64_t cost_of(const Beginning& beginning, std::size_t group) const;
  Beginning with(const Beginning& beginning, std::size_t group) const;
  std::int64_t least_after(const Beginning& beginning);
  PairFigures unfairness_after(const Beginning& beginning) const;
  /// False if no list that begins so can have all |UF| ≤ `limit`.
  bool can_stay_within(const Beginning& beginning, double limit) const;
  bool can_be_better(const Beginning& beginning);
  void search(const Beginning& beginning);
  void compare(const Beginning& whole);
  void write_list(const GroupedBlocks& blocks, std::vector<std::int32_t>& list) const;

  PhiloxKey key_;
  std::uint32_t round_ = 0;
  int length_ = 0;
  const FairRound* fair_ = nullptr;
  std::array<std::vector<std::int32_t>, kMostGroups> docs_;  // the first `length` places of each group
  /// [group][its document][other group][count]: what the document adds where so many documents of the other
  /// group are placed.
  std::array<std::array<std::array<std::array<std::int32_t, kMostPlaces + 1>, kMostGroups>, kMostPlaces>,
             kMostGroups>
      costs_;
  std::array<double, kMostPlaces + 1> rest_;               // exposure of all places from this one on
  std::unordered_map<std::uint64_t, std::int64_t> least_;  // by counts
  std::int64_t base_violated_ = 0;                         // by the ranker's list
  std::optional<FairChoice> best_;
  std::int64_t steps_ = 0;
  std::int64_t templates_ = 0;
  std::vector<std::uint64_t> placed_;
};

}  // namespace olrank
