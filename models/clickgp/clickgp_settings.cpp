#include "models/clickgp/clickgp_settings.h"

namespace olrank {

const Schema& ClickGpSettings::schema() {
  using S = ClickGpSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "The click model of kind clickgp.")
          .field(
              "terms", &S::terms,
              "the models that clicks are explained by: `linear` alone, or a second one beside it, "
              "weighted "
              "by how well each predicts clicks: `additive`, or `products`, which adds a network of "
              "products "
              "of two features to the additive one, and finds out which; the second model costs more where "
              "there are many features")
          .field("memory_limit", &S::memory_limit,
                 "memory for the documents that were shown; queries asked least recently are forgotten "
                 "beyond it, while what they taught stays in the model; 0 sets no limit")
          .unit("MB")
          .at_least(0)
          .field("forget", &S::forget,
                 "lists after which clicks count half, for users who change their minds; 0 keeps all")
          .unit("lists")
          .at_least(0)
          .build();
  return schema;
}

}  // namespace olrank
