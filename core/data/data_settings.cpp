#include "core/data/data_settings.h"

namespace olrank {

const Schema& DataSettings::schema() {
  static const Schema schema =
      SchemaBuilder<DataSettings>("data", "The data that a run learns from and is evaluated on.")
          .field("source", &DataSettings::source,
                 "a folder of LETOR files, or `synth:NAME?key=value&…` for synthetic data")
          .flag("data")
          .field("train", &DataSettings::train, "training file, instead of a folder")
          .field("vali", &DataSettings::vali, "validation file, instead of a folder")
          .field("test", &DataSettings::test, "test file, instead of a folder")
          .field("folds", &DataSettings::folds, "folds to run; each has its own trials", {1})
          .flag("fold")
          .field("normalise", &DataSettings::normalise, "feature normalisation")
          .field("evaluate", &DataSettings::evaluate, "the part that offline metrics are computed on")
          .field("drop_constant", &DataSettings::drop_constant,
                 "drop features that are constant over the training set")
          .field("cache", &DataSettings::cache,
                 "folder for binary copies of text files; `auto` is the user's cache folder, `none` "
                 "disables the cache")
          .flag("cache")
          .field("max_memory", &DataSettings::max_memory,
                 "limit for dense features in memory, such as `8GB`, beyond which they go to files in the "
                 "cache folder; `auto` is half of the machine's memory, beyond which they are refused, and "
                 "refuses a matrix that is larger than both 1 GB and 100 times its text")
          .flag("max-memory")
          .field(
              "layout", &DataSettings::layout,
              "`sparse` keeps the features that are not zero alone, `dense` all; `auto` is sparse from "
              "10,000 features on where fewer than 1 in 16 values are not zero, and where a dense matrix "
              "above 1 GB would take more than 100 times the bytes of its text")
          .build();
  return schema;
}

}  // namespace olrank
