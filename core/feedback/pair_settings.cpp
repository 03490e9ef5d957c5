#include "core/feedback/pair_settings.h"

namespace olrank {

const Schema& PairSettings::schema() {
  static const Schema schema =
      SchemaBuilder<PairSettings>("ranker", "Which examined documents form preference pairs.")
          .field("pairs", &PairSettings::pairs,
                 "which clicked and unclicked documents form pairs; `expected` (olranknet, p2neurrank) "
                 "uses a random matching for the covariance and, for the loss, all pairs weighted by their "
                 "probability of being matched")
          .build();
  return schema;
}

}  // namespace olrank
