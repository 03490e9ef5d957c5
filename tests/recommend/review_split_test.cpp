#include "recommend/review_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace olrank {
namespace {

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
