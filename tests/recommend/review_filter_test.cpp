#include "recommend/review_filter.h"

#include <gtest/gtest.h>

#include "recommend/review_reader.h"

namespace olrank {
namespace {

/// ann, bob and cid review phone; only cid mentions size, and only ann reviews cup.
Reviews some_reviews() {
  return parse_reviews(R"({"user":"cid","item":"phone","rating":1,"opinions":[["size","big",1]]}
{"user":"ann","item":"phone","rating":2,"opinions":[["screen","dim",-1],["screen","sharp",1]]}
{"user":"bob","item":"phone","rating":4,"opinions":[["screen","sharp",1]]}
{"user":"ann","item":"cup","rating":5,"opinions":[["screen","none",-1]]}
)",
                       "r");
}

TEST(ReviewFilterTest, KeepsEverythingWithoutThresholds) {
  Reviews reviews = some_reviews();
  const FilterCounts removed = filter_reviews(reviews, {});
  EXPECT_EQ(removed.reviews + removed.users + removed.features, 0);
  EXPECT_EQ(reviews.size(), 4);
}

TEST(ReviewFilterTest, RemovesUntilAllThatIsLeftHasSupport) {
  Reviews reviews = some_reviews();
  // size goes, then cid's review that mentions nothing else, then cup with a single review.
  const FilterCounts removed =
      filter_reviews(reviews, {.feature_reviews = 2, .review_features = 1, .item_reviews = 2});
  EXPECT_EQ(removed.features, 1);
  EXPECT_EQ(removed.reviews, 2);
  EXPECT_EQ(removed.users, 1);
  EXPECT_EQ(removed.items, 1);
  ASSERT_EQ(reviews.size(), 2);
  EXPECT_EQ(reviews.names.users[0], "ann");
  EXPECT_EQ(reviews.mentions_of(0).size(), 2U);
  EXPECT_EQ(reviews.names.phrases.size(), 2);
}

TEST(ReviewFilterTest, SupportThatDependsOnWhatGoesIsCheckedAgain) {
  Reviews reviews = some_reviews();
  filter_reviews(reviews, {.item_reviews = 2, .user_reviews = 2});
  EXPECT_EQ(reviews.size(), 0);
}

TEST(ReviewFilterTest, FrequentFeaturesAreThoseOfMostReviews) {
  Reviews reviews = some_reviews();
  keep_frequent_features(reviews, 1);
  EXPECT_EQ(reviews.size(), 4);
  ASSERT_EQ(reviews.names.features.size(), 1);
  EXPECT_EQ(reviews.names.features[0], "screen");
  EXPECT_TRUE(reviews.mentions_of(0).empty());
}

TEST(ReviewFilterTest, RepeatedReviewsBecomeOne) {
  Reviews reviews = parse_reviews(R"({"user":"a","item":"x","rating":1,"opinions":[["f","p",1]]}
{"user":"b","item":"x","rating":5}
{"user":"a","item":"x","rating":4,"opinions":[["g","q",-1]]}
)",
                                  "r");
  EXPECT_EQ(merge_repeated_reviews(reviews), 1);
  ASSERT_EQ(reviews.size(), 2);
  EXPECT_EQ(reviews.rating[0], 2.5F);
  EXPECT_EQ(reviews.mentions_of(0).size(), 2U);
  EXPECT_EQ(reviews.rating[1], 5.0F);
  EXPECT_EQ(merge_repeated_reviews(reviews), 0);
}

}  // namespace
}  // namespace olrank
