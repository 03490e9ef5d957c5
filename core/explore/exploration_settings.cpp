#include "core/explore/exploration_settings.h"

namespace olrank {

const Schema& ExplorationSettings::schema() {
  using S = ExplorationSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "When an order counts as certain, and what happens to the others.")
          .field("alpha", &S::alpha, "how many widths an order must be clear of")
          .symbol("α")
          .at_least(0)
          .field("alpha_schedule", &S::alpha_schedule,
                 "a constant α, or the theoretical α_t from log det A")
          .field("c1", &S::c1, "first factor of the theoretical α_t")
          .symbol("c₁")
          .at_least(0)
          .field("c2", &S::c2, "second factor of the theoretical α_t")
          .symbol("c₂")
          .at_least(0)
          .field("delta", &S::delta, "error probability of the theoretical α_t")
          .symbol("δ")
          .above(0)
          .at_most(1)
          .field("noise_subgaussian", &S::noise_subgaussian,
                 "sub-Gaussian click noise of the theoretical α_t")
          .symbol("ν")
          .above(0)
          .field("slack", &S::slack,
                 "probability by which a certain order must clear one half beyond its width")
          .symbol("ε")
          .at_least(0)
          .at_most(0.5)
          .field("list", &S::list, "how the shown list is made from scores and certain orders")
          .field("refine", &S::refine, "close certain orders transitively before blocks are formed")
          .build();
  return schema;
}

}  // namespace olrank
