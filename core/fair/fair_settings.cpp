#include "core/fair/fair_settings.h"

#include <fmt/format.h>

#include "core/error.h"

namespace olrank {

void check_group_count(const FairSettings& settings, std::size_t groups, std::string_view ranker) {
  if (groups == 2 || settings.fair != Fairness::kFairExp ||
      settings.template_search == TemplateSearch::kFairSwap)
    return;
  throw InvalidArgument(
      fmt::format("Ranker '{}' has template_search = \"exact\", which is for two groups, but there are {}: "
                  "use \"fairswap\".",
                  ranker, groups));
}

const Schema& FairSettings::schema() {
  using S = FairSettings;
  static const Schema schema =
      SchemaBuilder<S>("fair", "How a ranker keeps the exposure of groups in balance.")
          .field("fair", &S::fair,
                 "`fairexp` chooses, among all lists of groups that keep the unfairness within ε, the one "
                 "that violates the fewest certain orders; `fairco` adds to the scores of a group with too "
                 "little exposure; both need [groups]")
          .field("template_search", &S::template_search,
                 "how FairExp finds the list of a template: the paper's greedy `fairswap`, or `exact`, "
                 "which violates as few certain orders as any list and is for two groups only")
          .field("fair_gain", &S::fair_gain, "increase of a score for each unit of unfairness in FairCo")
          .symbol("λ_c")
          .at_least(0.0)
          .build();
  return schema;
}

}  // namespace olrank
