#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "recommend/review_reader.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

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
  const ReviewCounts removed = filter_reviews(reviews, {});
  EXPECT_EQ(removed.reviews + removed.users + removed.features, 0);
  EXPECT_EQ(reviews.size(), 4);
}

TEST(ReviewFilterTest, RemovesUntilAllThatIsLeftHasSupport) {
  Reviews reviews = some_reviews();
  // size goes, then cid's review that mentions nothing else, then cup with a single review.
  const ReviewCounts removed =
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

constexpr std::string_view kTwoReviews =
    R"({"user":"ann","item":"phone","rating":4,"opinions":[["battery","lasts",1],["screen","dim",-1]]})"
    "\n"
    R"( { "opinions" : [ ] , "rating" : 2.5e0, "item":"caf\u00e9 \ud83d\ude00\"", "user":"bob" } )"
    "\n\n";

std::string problem(std::string_view text) {
  return message_of<DataError>([&] { parse_reviews(text, "r.jsonl"); });
}

TEST(ReviewReaderTest, ReadsReviewsInAnyOrderOfKeys) {
  const Reviews reviews = parse_reviews(kTwoReviews, "r.jsonl");
  ASSERT_EQ(reviews.size(), 2);
  EXPECT_EQ(reviews.names.users[reviews.user[0]], "ann");
  EXPECT_EQ(reviews.names.items[reviews.item[1]], "café 😀\"");
  EXPECT_EQ(reviews.rating[1], 2.5F);
  ASSERT_EQ(reviews.mentions_of(0).size(), 2U);
  EXPECT_EQ(reviews.names.features[reviews.mentions_of(0)[1].feature], "screen");
  EXPECT_EQ(reviews.names.phrases[reviews.mentions_of(0)[1].phrase], "dim");
  EXPECT_EQ(reviews.mentions_of(0)[1].sentiment, -1);
  EXPECT_TRUE(reviews.mentions_of(1).empty());
}

TEST(ReviewReaderTest, WrittenReviewsReadBackFromEveryFormat) {
  const TemporaryFolder folder;
  const Reviews reviews = parse_reviews(kTwoReviews, "r.jsonl");
  for (const char* name : {"r.jsonl", "r.jsonl.gz", "r.jsonl.zst"}) {
    write_reviews(reviews, folder.path() / name);
    const Reviews back = read_reviews(folder.path() / name);
    EXPECT_EQ(back.names, reviews.names) << name;
    EXPECT_EQ(back.user, reviews.user) << name;
    EXPECT_EQ(back.rating, reviews.rating) << name;
    EXPECT_EQ(back.mentions, reviews.mentions) << name;
  }
}

TEST(ReviewReaderTest, SaysWhereALineIsBroken) {
  expect_cases("recommend/reviews_test.txt", "reviews", problem);
}

TEST(ReviewReaderTest, HoldsRatingsToTheScale) {
  EXPECT_EQ(parse_reviews(R"({"user":"a","item":"b","rating":9})", "r", 10.0).rating[0], 9.0F);
}

TEST(ReviewReaderTest, RefusesDamagedCompression) {
  const TemporaryFolder folder;
  write_reviews(parse_reviews(kTwoReviews, "r"), folder.path() / "r.gz");
  const std::string bytes = read_file(folder.path() / "r.gz");
  write_file_atomically(folder.path() / "cut.gz", std::string_view(bytes).substr(0, bytes.size() / 2));
  EXPECT_THROW(read_reviews(folder.path() / "cut.gz"), DataError);
  EXPECT_THROW(read_reviews(folder.path() / "none.gz"), IoError);
}

/// Users with 1 to 20 reviews each.
Reviews many_reviews(int users) {
  Reviews reviews;
  for (int user = 0; user < users; ++user) {
    const std::int32_t by = reviews.names.users.intern("u" + std::to_string(user));
    for (int item = 0; item <= user % 20; ++item)
      reviews.add(by, reviews.names.items.intern("i" + std::to_string(item)), 3.0F, {});
  }
  return reviews;
}

TEST(ReviewSplitTest, PartsAreDisjointAndCoverAllReviews) {
  const Reviews reviews = many_reviews(200);
  for (const SplitBy by : {SplitBy::kReviews, SplitBy::kUsers}) {
    const ReviewSplit split = split_reviews(reviews, {.by = by, .test_users = 0.3});
    std::vector<std::int64_t> all = split.train;
    all.insert(all.end(), split.validation.begin(), split.validation.end());
    all.insert(all.end(), split.test.begin(), split.test.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(std::ssize(all), reviews.size());
    for (std::int64_t i = 0; i < reviews.size(); ++i) ASSERT_EQ(all[i], i);
    EXPECT_FALSE(split.test.empty());
    EXPECT_FALSE(split.validation.empty());
  }
}

TEST(ReviewSplitTest, SharesHold) {
  const Reviews reviews = many_reviews(4000);
  const ReviewSplit split = split_reviews(reviews, {});
  const double all = static_cast<double>(reviews.size());
  // Rounding adds at most a variance of ½ a user: 5 deviations are below 0.006 of 42,000 reviews.
  EXPECT_NEAR(static_cast<double>(split.train.size()) / all, 0.8, 0.006);
  EXPECT_NEAR(static_cast<double>(split.validation.size()) / all, 0.1, 0.006);
  EXPECT_NEAR(static_cast<double>(split.test.size()) / all, 0.1, 0.006);
}

TEST(ReviewSplitTest, NewUsersHaveNoReviewInTraining) {
  const Reviews reviews = many_reviews(400);
  const ReviewSplit split = split_reviews(reviews, {.by = SplitBy::kUsers, .test_users = 0.2});
  std::set<std::int32_t> fresh;
  for (const std::int64_t review : split.test) fresh.insert(reviews.user[review]);
  EXPECT_GT(fresh.size(), 40U);
  EXPECT_LT(fresh.size(), 120U);
  for (const std::int64_t review : split.train) EXPECT_EQ(fresh.count(reviews.user[review]), 0U);
}

TEST(ReviewSplitTest, SeedsDecide) {
  const Reviews reviews = many_reviews(100);
  EXPECT_EQ(split_reviews(reviews, {.seed = 3}).train, split_reviews(reviews, {.seed = 3}).train);
  EXPECT_NE(split_reviews(reviews, {.seed = 3}).train, split_reviews(reviews, {.seed = 4}).train);
}

}  // namespace
}  // namespace olrank
