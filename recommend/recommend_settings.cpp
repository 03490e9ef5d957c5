#include "recommend/recommend_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace olrank {

namespace {

/// Each key is a flag of its own: `olrank recommend train` has no other table.
Schema with_short_flags(Schema schema) {
  for (Setting& setting : schema.settings) {
    setting.flag = setting.key;
    std::replace(setting.flag.begin(), setting.flag.end(), '_', '-');
  }
  return schema;
}

}  // namespace

const Schema& RecommendSettings::schema() {
  static const Schema schema = with_short_flags(
      SchemaBuilder<RecommendSettings>("recommend", "A recommender from reviews: `olrank recommend train`.")
          .field("kind", &RecommendSettings::kind, "kind of recommender")
          .field("data", &RecommendSettings::data,
                 "file of reviews as JSON lines (plain, .gz, .zst), or `synth:factors?key=value&…` and "
                 "`synth:trees?…` for generated ones")
          .field("scale", &RecommendSettings::scale, "highest rating of the scale, which begins at 1")
          .symbol("N")
          .above(1)
          .at_most(1000)
          .field("feature_support", &RecommendSettings::feature_support,
                 "reviews that must mention a feature; others are left out")
          .at_least(0)
          .field("review_support", &RecommendSettings::review_support,
                 "different features that a review must mention")
          .at_least(0)
          .field("item_support", &RecommendSettings::item_support, "reviews that an item must have")
          .at_least(0)
          .field("user_support", &RecommendSettings::user_support, "reviews that a user must have")
          .at_least(0)
          .field("frequent_features", &RecommendSettings::frequent_features,
                 "number of features to keep, those that most reviews mention; 0 keeps all")
          .at_least(0)
          .field("split", &RecommendSettings::split,
                 "`reviews`: each user's reviews are split; `users`: some users are new in the test")
          .field("train_share", &RecommendSettings::train_share, "share of the reviews for training")
          .above(0)
          .at_most(1)
          .field("validation_share", &RecommendSettings::validation_share,
                 "share of the reviews for validation; the rest is the test part")
          .at_least(0)
          .at_most(1)
          .field("test_users", &RecommendSettings::test_users, "share of new users, with `split = users`")
          .at_least(0)
          .at_most(1)
          .field("seed", &RecommendSettings::seed, "seed of the split and of the training")
          .at_least(0)
          .field("passes", &RecommendSettings::passes,
                 "passes of the training; depending on the kind, a pass takes as many entries as the "
                 "tensors have, or fits both sides or both trees; 0 is the kind's default")
          .at_least(0)
          .field("eval_every", &RecommendSettings::eval_every, "passes between validations")
          .at_least(1)
          .field("patience", &RecommendSettings::patience,
                 "validations without a better result after which training stops; 0 never stops early")
          .at_least(0)
          .field("keep", &RecommendSettings::keep,
                 "keep the model of the best validation, or of the last pass")
          .field("cutoff", &RecommendSettings::cutoff, "cutoff of the validation NDCG")
          .at_least(1)
          .field("gain", &RecommendSettings::gain, "gain of a held-out item in NDCG: 1, or 2^rating − 1")
          .include(&RecommendSettings::factors, FactorSettings::schema())
          .include(&RecommendSettings::trees, TreeSettings::schema())
          .build());
  return schema;
}

void check_recommend_settings(const RecommendSettings& settings) {
  if (settings.train_share + settings.validation_share > 1.0 + 1e-9) {
    throw InvalidArgument(
        fmt::format("train_share and validation_share must be at most 1 together, not {} + {}.",
                    settings.train_share, settings.validation_share));
  }
  if (settings.patience > 0 && settings.validation_share <= 0.0)
    throw InvalidArgument("patience needs a validation part: set validation_share above 0.");
}

}  // namespace olrank
