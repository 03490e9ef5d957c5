#include "recommend/ranking_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"
#include "recommend/recommender.h"
#include "recommend/synthetic_reviews.h"

namespace olrank {
namespace {

constexpr int kUsers = 30;
constexpr int kItems = 60;

/// Random scores from a small set, so that many tie.
class RandomRecommender : public Recommender {
 public:
  void score(std::int64_t user, std::span<float> scores) const override {
    RngStream random(make_key({.seed = 5}), static_cast<std::uint32_t>(user));
    for (float& score : scores) score = static_cast<float>(random.index(9));
  }
  bool scores_new_users() const override { return true; }
  void score_new_user(std::span<const KnownReview> reviews, std::span<float> scores) const override {
    score(std::ssize(reviews), scores);
  }
  void save(StateWriter&) const override {}
};

Reviews random_reviews() {
  Reviews reviews;
  RngStream random(make_key({.seed = 6}), 0);
  for (int item = 0; item < kItems; ++item) reviews.names.items.intern("i" + std::to_string(item));
  for (int user = 0; user < kUsers; ++user) {
    const std::int32_t by = reviews.names.users.intern("u" + std::to_string(user));
    for (int item = 0; item < kItems; ++item) {
      if (random.uniform() < 0.2) reviews.add(by, item, static_cast<float>(1 + random.index(5)), {});
    }
  }
  return reviews;
}

/// The definition, over the whole sorted list.
double slow_ndcg(const Reviews& reviews, const ReviewSplit& split, std::int32_t user, std::int64_t cutoff,
                 bool graded) {
  std::vector<double> gain(kItems, 0.0);
  std::vector<bool> candidate(kItems, true);
  for (const std::int64_t review : split.train)
    if (reviews.user[review] == user) candidate[reviews.item[review]] = false;
  for (const std::int64_t review : split.test) {
    if (reviews.user[review] == user)
      gain[reviews.item[review]] = graded ? std::pow(2.0, reviews.rating[review]) - 1.0 : 1.0;
  }
  std::vector<float> scores(kItems);
  RandomRecommender().score(user, scores);
  std::vector<int> list;
  for (int item = 0; item < kItems; ++item)
    if (candidate[item]) list.push_back(item);
  std::stable_sort(list.begin(), list.end(), [&](int a, int b) { return scores[a] > scores[b]; });
  double dcg = 0.0;
  for (std::int64_t rank = 0; rank < std::min<std::int64_t>(cutoff, std::ssize(list)); ++rank)
    dcg += gain[list[rank]] / std::log2(static_cast<double>(rank) + 2.0);
  std::sort(gain.rbegin(), gain.rend());
  double best = 0.0;
  for (std::int64_t rank = 0; rank < std::min<std::int64_t>(cutoff, kItems); ++rank)
    best += gain[rank] / std::log2(static_cast<double>(rank) + 2.0);
  return dcg / best;
}

TEST(RankingFiguresTest, AgreesWithTheDefinitionOverSortedLists) {
  const Reviews reviews = random_reviews();
  const ReviewSplit split = split_reviews(reviews, {.train_share = 0.6, .validation_share = 0.0});
  const TrainingData data = make_training_data(reviews, split.train);
  for (const bool graded : {false, true}) {
    RankingOptions options;
    options.cutoffs = {1, 3, 10, 100};
    options.gain = graded ? HeldOutGain::kGraded : HeldOutGain::kBinary;
    std::vector<RankingFigures> found;
    for (const int threads : {1, 2, 4}) {
      ExecutionContext context(threads);
      found.push_back(judge_recommender(context, RandomRecommender(), data, split.test, options));
      EXPECT_EQ(found.back().ndcg, found.front().ndcg);
    }
    ASSERT_GT(found[0].users.size(), 20U);
    for (std::size_t cutoff = 0; cutoff < options.cutoffs.size(); ++cutoff) {
      for (std::size_t place = 0; place < found[0].users.size(); ++place) {
        const double expected =
            slow_ndcg(reviews, split, found[0].users[place], options.cutoffs[cutoff], graded);
        ASSERT_NEAR(found[0].ndcg[cutoff][place], expected, 1e-12);
        ASSERT_EQ(found[0].hits[cutoff][place], expected > 0.0 ? 1.0 : 0.0);
      }
    }
  }
}

TEST(RankingFiguresTest, UsersWithoutTrainingAreLeftOutAndCounted) {
  const Reviews reviews = random_reviews();
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> test;
  for (std::int64_t review = 0; review < reviews.size(); ++review)
    (reviews.user[review] != 4 && review % 2 == 0 ? train : test).push_back(review);
  const TrainingData data = make_training_data(reviews, train);
  ExecutionContext context;
  const RankingFigures figures = judge_recommender(context, RandomRecommender(), data, test, {});
  EXPECT_EQ(figures.without_training, 1);
  EXPECT_EQ(std::count(figures.users.begin(), figures.users.end(), 4), 0);
}

TEST(RankingFiguresTest, ColdStartJudgesTheSameReviewsHoweverManyAreKnown) {
  const Reviews reviews = random_reviews();
  std::vector<std::int64_t> all(reviews.size());
  std::iota(all.begin(), all.end(), 0);
  ExecutionContext context;
  const RankingFigures none = judge_cold_start(context, RandomRecommender(), reviews, all, 0, 5, {});
  const RankingFigures some = judge_cold_start(context, RandomRecommender(), reviews, all, 5, 5, {});
  EXPECT_EQ(none.users, some.users);
  EXPECT_GT(none.users.size(), 20U);
  EXPECT_NE(none.ndcg[0], some.ndcg[0]);
}

TEST(RankingFiguresTest, UsersOfFewReviewsKeepTheirFigures) {
  const Reviews reviews = random_reviews();
  const ReviewSplit split = split_reviews(reviews, {.train_share = 0.6, .validation_share = 0.0});
  const TrainingData data = make_training_data(reviews, split.train);
  ExecutionContext context(1);
  const RankingFigures all = judge_recommender(context, RandomRecommender(), data, split.test, {});
  const RankingFigures few = figures_of_few_reviews(all, data, 7);
  ASSERT_GT(few.users.size(), 2U);
  ASSERT_LT(few.users.size(), all.users.size());
  std::size_t found = 0;
  for (std::size_t place = 0; place < all.users.size(); ++place) {
    if (data.by_user.count(all.users[place]) > 7) continue;
    ASSERT_EQ(few.users[found], all.users[place]);
    for (std::size_t cutoff = 0; cutoff < all.cutoffs.size(); ++cutoff) {
      EXPECT_EQ(few.ndcg[cutoff][found], all.ndcg[cutoff][place]);
      EXPECT_EQ(few.hits[cutoff][found], all.hits[cutoff][place]);
    }
    ++found;
  }
  EXPECT_EQ(found, few.users.size());
}

TEST(RankingFiguresTest, BestItemsLeaveOutTheExcludedAndBreakTiesByNumber) {
  const std::vector<float> scores = {1.0F, 3.0F, 2.0F, 3.0F, 3.0F};
  const std::vector<std::int32_t> excluded = {3};
  EXPECT_EQ(best_items(scores, excluded, 3), (std::vector<std::int32_t>{1, 4, 2}));
  EXPECT_EQ(best_items(scores, excluded, 99).size(), 4U);
}

Reviews planted(std::int64_t seed) {
  ExecutionContext context;
  return make_factor_reviews(context,
                             {.users = 150, .items = 150, .features = 20, .reviews = 1800, .seed = seed});
}

double test_ndcg(RecommenderKind kind, const ReviewSplit& split, const TrainingData& data,
                 std::int64_t passes) {
  RecommendSettings settings = default_settings(kind);
  settings.passes = passes;
  settings.factors.pairs = 4096;
  ExecutionContext context;
  const auto training = recommender_kind(kind).start(settings, data);
  while (!training->finished()) training->advance(context);
  return judge_recommender(context, training->model(), data, split.test, {}).mean_ndcg(2);
}

TEST(PlantedFactorsTest, TheSameReviewsOnAnyNumberOfThreads) {
  const PlantedFactors settings = {.users = 70, .items = 70, .reviews = 500};
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

/// Planted preferences are found: who learns them is ahead of who counts, in every one of four data sets.
/// A method as good as counting would be ahead in all four with a probability of 1/16.
TEST(PlantedDataTest, FactorisationsAreAheadOfPopularity) {
  for (std::int64_t seed = 1; seed <= 4; ++seed) {
    const Reviews reviews = planted(seed);
    const ReviewSplit split = split_reviews(reviews, {.seed = static_cast<std::uint64_t>(seed)});
    const TrainingData data = make_training_data(reviews, split.train);
    const double popular = test_ndcg(RecommenderKind::kPopular, split, data, 1);
    EXPECT_GT(test_ndcg(RecommenderKind::kMterSa, split, data, 40), popular) << seed;
    EXPECT_GT(test_ndcg(RecommenderKind::kMter, split, data, 40), popular) << seed;
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
    ReviewCounts other = counts_of(reviews);
    ++other.items;
    StateReader again(writer.bytes(), "model");
    EXPECT_THROW(row.read(again, other), IoError) << name_of(row.kind);
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
