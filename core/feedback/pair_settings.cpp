#include "core/feedback/pair_settings.h"

namespace olrank {

const Schema& PairSettings::schema() {
  static const Schema schema =
      SchemaBuilder<PairSettings>("ranker", "Which examined documents make preference pairs.")
          .field("pairs", &PairSettings::pairs,
                 "which clicked and unclicked documents are compared; `expected` (olranknet, p2neurrank): "
                 "a matching "
                 "for the covariance, all pairs with their probability in one for the loss")
          .build();
  return schema;
}

}  // namespace olrank
