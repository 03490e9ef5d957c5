#include "core/data/data_settings.h"

namespace olrank {

const Schema& DataSettings::schema() {
  static const Schema schema =
      SchemaBuilder<DataSettings>("data", "Which documents and queries a run learns from and is judged on.")
          .field("source", &DataSettings::source,
                 "a folder of LETOR files, or `synth:NAME?key=value&…` for generated data")
          .flag("data")
          .field("train", &DataSettings::train, "the training file, instead of a folder")
          .field("vali", &DataSettings::vali, "the validation file, instead of a folder")
          .field("test", &DataSettings::test, "the test file, instead of a folder")
          .field("folds", &DataSettings::folds, "which folds of the folder, each with trials of its own")
          .at_least(1)
          .flag("fold")
          .field("normalise", &DataSettings::normalise, "how feature values are scaled")
          .field("evaluate", &DataSettings::evaluate, "the part that offline figures come from")
          .field("drop_constant", &DataSettings::drop_constant,
                 "leave out features that are constant over the training part")
          .field(
              "cache", &DataSettings::cache,
              "folder of binary copies of text files; `auto` is the user's cache folder, `none` keeps none")
          .flag("cache")
          .field("max_memory", &DataSettings::max_memory,
                 "what the dense features may take, such as `8GB`; `auto` is half of the memory")
          .flag("max-memory")
          .build();
  return schema;
}

}  // namespace olrank
