#include "recommend/recommender.h"

#include <algorithm>

#include "core/throw_error.h"

namespace olrank {

void Recommender::score_new_user(std::span<const KnownReview>, std::span<float>) const {
  throw InvalidArgument(
      "This recommender knows only the users of its training: new users need one of kind fact, fmf or "
      "popular.");
}

std::optional<Explanation> Recommender::explain(std::int64_t, std::int64_t, const ReviewNames&) const {
  return std::nullopt;
}

namespace {

/// MostPopular: an item's score is its number of reviews in the training. Everybody gets one list.
class PopularRecommender : public Recommender {
 public:
  explicit PopularRecommender(std::vector<float> counts) : counts_(std::move(counts)) {}

  void score(std::int64_t, std::span<float> scores) const override {
    std::copy(counts_.begin(), counts_.end(), scores.begin());
  }
  bool scores_new_users() const override { return true; }
  void score_new_user(std::span<const KnownReview>, std::span<float> scores) const override {
    score(0, scores);
  }
  void save(StateWriter& state) const override { state.put("popular.counts", counts_); }

 private:
  std::vector<float> counts_;  // by item
};

/// Counting takes one pass and nothing else.
class PopularTraining : public RecommenderTraining {
 public:
  PopularTraining(const RecommendSettings&, const TrainingData& data)
      : RecommenderTraining(1), data_(data), model_(counts()) {}

  TrainingPassReport advance(ExecutionContext&) override { return {.pass = ++passed_}; }
  const Recommender& model() const override { return model_; }
  void fields(StateFields& state) override { state.numbers("popular.passed", passed_); }

 private:
  std::vector<float> counts() const {
    std::vector<float> counts(data_.by_item.rows());
    for (std::int64_t item = 0; item < data_.by_item.rows(); ++item)
      counts[item] = static_cast<float>(data_.by_item.count(item));
    return counts;
  }

  const TrainingData& data_;
  PopularRecommender model_;
};

std::int64_t plan_popular(const RecommendSettings&, const ReviewCounts& counts, int) {
  return counts.items * static_cast<std::int64_t>(sizeof(float));
}

std::unique_ptr<Recommender> read_popular(StateReader& state, const ReviewCounts& counts) {
  std::vector<float> by_item(counts.items);
  state.get_into("popular.counts", std::span<float>(by_item));
  return std::make_unique<PopularRecommender>(std::move(by_item));
}

using Key = std::string_view;

const std::array kKinds = {
    kMterKind,
    kMterSKind,
    kMterSaKind,
    kFactKind,
    kFmfKind,
    kEfmKind,
    kBprmfKind,
    kNmfKind,
    RecommenderKindRow{.about = "the items with most reviews, the same for everybody",
                       .plan = plan_popular,
                       .start = start_training<PopularTraining>,
                       .read = read_popular},
};

bool lists(const RecommenderKindRow& row, Key key) {
  return std::find(row.keys.begin(), row.keys.end(), key) != row.keys.end();
}

/// Each key is a flag of its own: `olrank recommend train` has no other table.
Schema with_short_flags(Schema schema) {
  for (Setting& setting : schema.settings) {
    setting.flag = setting.key;
    std::replace(setting.flag.begin(), setting.flag.end(), '_', '-');
  }
  return schema;
}

}  // namespace

std::span<const RecommenderKindRow> recommender_kinds() {
  return kKinds;
}

const RecommenderKindRow& recommender_kind(RecommenderKind kind) {
  return *std::ranges::find(kKinds, kind, &RecommenderKindRow::kind);
}

bool kind_reads(RecommenderKind kind, Key key) {
  if (lists(recommender_kind(kind), key)) return true;
  return std::none_of(kKinds.begin(), kKinds.end(),
                      [&](const RecommenderKindRow& row) { return lists(row, key); });
}

RecommendSettings default_settings(RecommenderKind kind) {
  RecommendSettings settings;
  settings.kind = kind;
  if (const auto set = recommender_kind(kind).set_defaults) set(settings);
  return settings;
}

RecommendSettings resolved(RecommendSettings settings) {
  if (settings.passes == 0) settings.passes = recommender_kind(settings.kind).passes;
  return settings;
}

const Schema& RecommendSettings::schema() {
  using S = RecommendSettings;
  static const Schema schema = with_short_flags(
      SchemaBuilder<S>("recommend", "A recommender from reviews: `olrank recommend train`.")
          .field("kind", &S::kind, "kind of recommender")
          .field("data", &S::data,
                 "file of reviews as JSON lines (plain, .gz, .zst), or `synth:factors?key=value&…` and "
                 "`synth:trees?…` for generated ones")
          .field("scale", &S::scale, "highest rating of the scale, which begins at 1", above(1, 1000))
          .symbol("N")
          .field("feature_support", &S::feature_support,
                 "reviews that must mention a feature; others are left out", {0})
          .field("review_support", &S::review_support, "different features that a review must mention", {0})
          .field("item_support", &S::item_support, "reviews that an item must have", {0})
          .field("user_support", &S::user_support, "reviews that a user must have", {0})
          .field("frequent_features", &S::frequent_features,
                 "number of features to keep, those that most reviews mention; 0 keeps all", {0})
          .field("split", &S::split,
                 "`reviews`: each user's reviews are split; `users`: some users are new in the test")
          .field("train_share", &S::train_share, "share of the reviews for training", above(0, 1))
          .field("validation_share", &S::validation_share,
                 "share of the reviews for validation; the rest is the test part", {0, 1})
          .field("test_users", &S::test_users, "share of new users, with `split = users`", {0, 1})
          .field("seed", &S::seed, "seed of the split and of the training", {0})
          .field("passes", &S::passes,
                 "passes of the training; depending on the kind, a pass takes as many entries as the "
                 "tensors have, or fits both sides or both trees; 0 is the kind's default",
                 {0})
          .field("eval_every", &S::eval_every, "passes between validations", {1})
          .field("patience", &S::patience,
                 "validations without a better result after which training stops; 0 never stops early", {0})
          .field("keep", &S::keep, "keep the model of the best validation, or of the last pass")
          .field("cutoff", &S::cutoff, "cutoff of the validation NDCG", {1})
          .field("gain", &S::gain, "gain of a held-out item in NDCG: 1, or 2^rating − 1")
          .include(&S::factors, FactorSettings::schema())
          .include(&S::trees, TreeSettings::schema())
          .build());
  return schema;
}

void check_recommend_settings(const RecommendSettings& settings) {
  if (settings.train_share + settings.validation_share > 1.0 + 1e-9) {
    throw_error<InvalidArgument>(
        "train_share and validation_share must be at most 1 together, not {} + {}.", settings.train_share,
        settings.validation_share);
  }
  if (settings.patience > 0 && settings.validation_share <= 0.0)
    throw InvalidArgument("patience needs a validation part: set validation_share above 0.");
}

}  // namespace olrank
