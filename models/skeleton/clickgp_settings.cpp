#include "models/skeleton/clickgp_settings.h"

namespace olrank {

const Schema& ClickGpSettings::schema() {
  using S = ClickGpSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "The click model of kind clickgp.")
          .field("terms", &S::terms,
                 "the models that explain clicks: `linear` is a linear model alone; `additive` puts an "
                 "additive model beside the linear one and weights both by how well they predict clicks, "
                 "which costs more with many features; `products` adds to the additive model those "
                 "products of two features of which the clicks leave no doubt")
          .field("memory_limit", &S::memory_limit,
                 "memory for the documents that were shown; beyond it, the ranker forgets the queries "
                 "asked least recently and keeps the model that they taught; 0 sets no limit")
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
