#include "models/skeleton/bandit_settings.h"

namespace olrank {

const Schema& BanditSettings::schema() {
  using S = BanditSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "Exploration of the rankers without a posterior.")
          .field("exploration", &S::exploration, "exploration of `ranknet`")
          .field("epsilon", &S::epsilon,
                 "probability of a random document at each rank of an ε-greedy list; must be above 0 with "
                 "ε-greedy exploration")
          .at_least(0)
          .at_most(1)
          .field("exploration_radius", &S::exploration_radius,
                 "distance of a candidate from the current weights (dbgd, mgd)")
          .symbol("δ")
          .above(0)
          .field("interleaving", &S::interleaving, "how candidates are interleaved (dbgd, mgd)")
          .field("candidates", &S::candidates, "candidates per round (mgd)")
          .at_least(1)
          .field("exposure_clip", &S::exposure_clip,
                 "largest factor between a document's exposure by the learned policy and by the policy "
                 "that shows lists; a document beyond this factor counts no more (prpo)")
          .symbol("c")
          .above(1)
          .field("refresh_rounds", &S::refresh_rounds,
                 "rounds after which the learned policy replaces the policy that shows the lists (prpo, "
                 "intervention-aware)")
          .unit("rounds")
          .at_least(1)
          .build();
  return schema;
}

}  // namespace olrank
