#include "core/fair/fair_settings.h"

namespace olrank {

const Schema& FairSettings::schema() {
  using S = FairSettings;
  static const Schema schema =
      SchemaBuilder<S>("fair", "How a ranker keeps the exposure of two groups in balance.")
          .field(
              "fair", &S::fair,
              "`fairexp` chooses, among all lists of groups that keep the unfairness within ε, the one "
              "that violates the fewest certain orders; `fairco` adds to the scores of the group with too "
              "little exposure; both need [groups]")
          .field(
              "template_search", &S::template_search,
              "how FairExp finds the list of a template: the paper's greedy `fairswap`, or `exact`, which "
              "violates as few certain orders as any list")
          .field("fair_gain", &S::fair_gain, "what FairCo adds to a score per unit of unfairness")
          .symbol("λ_c")
          .at_least(0.0)
          .build();
  return schema;
}

}  // namespace olrank
