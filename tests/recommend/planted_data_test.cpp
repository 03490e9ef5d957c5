#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/io/state_archive.h"
#include "recommend/ranking_figures.h"
#include "recommend/recommender.h"
#include "recommend/synthetic_factors.h"

namespace olrank {
namespace {

Reviews planted(std::int64_t seed) {
  PlantedFactors settings;
  settings.users = settings.items = 150;
  settings.features = 20;
  settings.reviews = 1800;
  settings.seed = seed;
  ExecutionContext context;
  return make_factor_reviews(context, settings);
}

double test_ndcg(RecommenderKind kind, const Reviews& reviews, const ReviewSplit& split,
                 const TrainingData& data, std::int64_t passes) {
  RecommendSettings settings = default_settings(kind);
  settings.passes = passes;
  settings.factors.pairs = 4096;
  ExecutionContext context;
  const auto training = recommender_kind(kind).start(settings, data);
  while (!training->finished()) training->advance(context);
  EXPECT_GT(reviews.size(), 0);
  return judge_recommender(context, training->model(), data, split.test, {}).mean_ndcg(2);
}

TEST(PlantedFactorsTest, TheSameReviewsOnAnyNumberOfThreads) {
  PlantedFactors settings;
  settings.users = settings.items = 70;
  settings.reviews = 500;
  ExecutionContext one(1);
  ExecutionContext four(4);
  const Reviews a = make_factor_reviews(one, settings);
  const Reviews b = make_factor_reviews(four, settings);
  EXPECT_EQ(a.names, b.names);
  EXPECT_EQ(a.user, b.user);
  EXPECT_EQ(a.rating, b.rating);
  EXPECT_EQ(a.mentions, b.mentions);
  EXPECT_EQ(a.size(), 500);
}

/// What is planted is found: who learns preferences is ahead of who counts, in every one of four data sets.
/// A method as good as counting would be ahead in all four with a probability of 1/16.
TEST(PlantedDataTest, FactorisationsAreAheadOfPopularity) {
  for (std::int64_t seed = 1; seed <= 4; ++seed) {
    const Reviews reviews = planted(seed);
    const ReviewSplit split = split_reviews(reviews, {.seed = static_cast<std::uint64_t>(seed)});
    const TrainingData data = make_training_data(reviews, split.train);
    const double popular = test_ndcg(RecommenderKind::kPopular, reviews, split, data, 1);
    EXPECT_GT(test_ndcg(RecommenderKind::kMterSa, reviews, split, data, 40), popular) << seed;
    EXPECT_GT(test_ndcg(RecommenderKind::kMter, reviews, split, data, 40), popular) << seed;
  }
}

/// Each kind scores the same after its model was written and read.
TEST(RecommenderKindsTest, ModelsReadBackToTheSameScores) {
  const Reviews reviews = planted(3);
  const ReviewSplit split = split_reviews(reviews, {});
  const TrainingData data = make_training_data(reviews, split.train);
  ExecutionContext context;
  for (const RecommenderKindRow& row : recommender_kinds()) {
    RecommendSettings settings = default_settings(row.kind);
    settings.passes = 2;
    settings.factors.pairs = 1024;
    const auto training = row.start(settings, data);
    EXPECT_GT(row.plan(settings, data.counts(), 2), 0);
    training->advance(context);
    StateWriter writer;
    training->model().save(writer);
    StateReader reader(writer.bytes(), "model");
    const auto model = row.read(reader, counts_of(reviews));
    reader.require_end();
    std::vector<float> before(reviews.names.items.size());
    std::vector<float> after(before.size());
    for (const std::int64_t user : {std::int64_t{0}, std::int64_t{7}}) {
      training->model().score(user, before);
      model->score(user, after);
      EXPECT_EQ(before, after) << name_of(row.kind);
    }
    EXPECT_EQ(training->model().explain(0, 1, reviews.names).has_value(), row.explains)
        << name_of(row.kind);
  }
}

TEST(RecommenderKindsTest, EveryKeyOfAKindIsASetting) {
  for (const RecommenderKindRow& row : recommender_kinds()) {
    for (const std::string_view key : row.keys)
      EXPECT_NE(RecommendSettings::schema().find(key), nullptr) << key;
  }
  EXPECT_TRUE(kind_reads(RecommenderKind::kNmf, "dimension"));
  EXPECT_FALSE(kind_reads(RecommenderKind::kNmf, "pair_weight"));
  EXPECT_TRUE(kind_reads(RecommenderKind::kNmf, "seed"));
}

}  // namespace
}  // namespace olrank
