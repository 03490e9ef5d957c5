#include "jobs/settings/search_settings.h"

namespace olrank {

const Schema& SearchSettings::schema() {
  using S = SearchSettings;
  static const Schema schema =
      SchemaBuilder<S>("search",
                       "How `olrank tune` takes points from a `[sweep]`; other commands refuse this table.")
          .field("draws", &S::draws,
                 "points drawn at random for each ranker, where ranges may be swept; 0 tries every "
                 "combination")
          .at_least(0)
          .at_most(100000)
          .flag("draws")
          .field("seed", &S::seed, "random seed of the draws; more draws keep the first ones")
          .at_least(0)
          .build();
  return schema;
}

}  // namespace olrank
