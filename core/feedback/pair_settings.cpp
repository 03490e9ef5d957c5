#include "core/feedback/pair_settings.h"

namespace olrank {

const Schema& PairSettings::schema() {
  static const Schema schema =
      SchemaBuilder<PairSettings>(
          "ranker", "Which examined documents form preference pairs, and how much each counts.")
          .field("pairs", &PairSettings::pairs,
                 "which clicked and unclicked documents form pairs; `expected` (olranknet, p2neurrank) "
                 "uses a random matching for the covariance and, for the loss, all pairs weighted by their "
                 "probability of being matched")
          .field("examined_after", &PairSettings::examined_after,
                 "how many unclicked documents behind the last click count as examined")
          .symbol("l")
          .at_least(0)
          .field(
              "debias", &PairSettings::debias,
              "probability that users examine each rank, from the first rank on; the last value holds "
              "for all ranks below, too; a pair has the weight 1/probability of its winner's rank, at "
              "most 10; if empty, every pair has the weight 1; intervention-aware learns the probabilities "
              "instead")
          .above(0.0)
          .at_most(1.0)
          .build();
  return schema;
}

}  // namespace olrank
