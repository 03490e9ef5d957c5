#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/fair/exact_search.h"
#include "core/fair/exposure.h"
#include "core/fair/fair_settings.h"
#include "core/fair/fair_swap.h"
#include "core/fair/many_groups.h"
#include "core/fair/templates.h"

namespace olrank {

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
