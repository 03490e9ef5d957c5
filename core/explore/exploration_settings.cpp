#include "core/explore/exploration_settings.h"

namespace olrank {

const Schema& ExplorationSettings::schema() {
  using S = ExplorationSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "When an order counts as certain, and how uncertain orders are explored.")
          .field("alpha", &S::alpha,
                 "an order is certain if its margin exceeds alpha × width; also the factor of the "
                 "deviations that `sample` and `ucb` add")
          .symbol("α")
          .at_least(0)
          .field("alpha_schedule", &S::alpha_schedule,
                 "constant α, or the theoretical α_t computed from log det A")
          .field("c1", &S::c1, "first coefficient of the theoretical α_t")
          .symbol("c₁")
          .at_least(0)
          .field("c2", &S::c2, "second coefficient of the theoretical α_t")
          .symbol("c₂")
          .at_least(0)
          .field("delta", &S::delta,
                 "failure probability of the theoretical α_t; for clickgp, an order is certain from the "
                 "probability 1 − delta on")
          .symbol("δ")
          .above(0)
          .at_most(1)
          .field("list", &S::list,
                 "how the shown list is built from scores and certain orders; `blocks-certain` gives the "
                 "lists of `certain`; `sample` (posterior sampling) sorts by scores that are drawn with α "
                 "times their standard deviations, `ucb` by score + α × standard deviation")
          .field("refine", &S::refine,
                 "take the transitive closure of the certain orders before forming blocks")
          .build();
  return schema;
}

}  // namespace olrank
