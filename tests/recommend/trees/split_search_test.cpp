#include "recommend/trees/split_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "recommend/trees/pair_source.h"
#include "tests/recommend/trees/tree_world.h"

namespace olrank {
namespace {

// A user's value of a feature, from the reviews: the share of the user's mentions.
std::optional<double> slow_value(const Reviews& reviews, std::int64_t user, std::int32_t feature) {
  double mentions = 0.0;
  double of_feature = 0.0;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (reviews.user[review] != user) continue;
    for (const Mention& mention : reviews.mentions_of(review)) {
      mentions += 1.0;
      if (mention.feature == feature) of_feature += 1.0;
    }
  }
  if (of_feature == 0.0) return std::nullopt;
  return of_feature / mentions;
}

TEST(SplitSearchTest, PartsAreDisjointCoverTheNodeAndFollowThePredicate) {
  const TreeWorld world(3);
  for (std::int32_t feature = 0; feature < 5; ++feature) {
    const std::span<const float> cuts = world.thresholds.of(feature);
    for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
      const auto parts = parts_of_rows(world.split, world.rows, feature, static_cast<std::int32_t>(cut));
      ASSERT_EQ(parts.size(), world.rows.size());  // one part each: disjoint and covering
      for (std::size_t place = 0; place < parts.size(); ++place) {
        const auto value = slow_value(world.reviews, world.rows[place], feature);
        TreeBranch wanted = TreeBranch::kUnknown;
        if (value)
          wanted = static_cast<float>(*value) >= cuts[cut] ? TreeBranch::kAtLeast : TreeBranch::kBelow;
        EXPECT_EQ(parts[place], static_cast<std::uint8_t>(wanted));
      }
    }
  }
}

TEST(SplitSearchTest, ScreeningWithoutPairsIsExact) {
  const TreeWorld world(4);
  const double lambda = 2.0;
  const std::vector<double> anchor = {0.2, 0.1, 0.4, -0.1};
  // Every candidate by itself: sums of its parts from the ratings of their users.
  std::vector<SplitCandidate> slow;
  RidgeSolver solver(TreeWorld::kDimension);
  for (std::int32_t feature = 0; feature < world.profiles.features; ++feature) {
    const std::span<const float> cuts = world.thresholds.of(feature);
    for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
      std::array<std::vector<double>, 3> sums;
      std::array<std::int64_t, 3> counts{};
      sums.fill(std::vector<double>(squared_sums_size(TreeWorld::kDimension), 0.0));
      const auto parts = parts_of_rows(world.split, world.rows, feature, static_cast<std::int32_t>(cut));
      for (std::size_t place = 0; place < parts.size(); ++place) {
        ++counts[parts[place]];
        const auto of_row = world.split.sums_of(world.rows[place]);
        for (std::size_t i = 0; i < of_row.size(); ++i) sums[parts[place]][i] += of_row[i];
      }
      double reduction = 0.0;
      for (int part = 0; part < 3; ++part) reduction += solver.reduction(sums[part], lambda, anchor);
      if ((counts[0] > 0) + (counts[1] > 0) + (counts[2] > 0) < 2) continue;
      slow.push_back({feature, static_cast<std::int32_t>(cut), cuts[cut], reduction});
    }
  }
  std::ranges::stable_sort(slow, [](const auto& a, const auto& b) { return a.reduction > b.reduction; });
  ExecutionContext context;
  const auto found = best_splits(context, world.split, world.rows, anchor, lambda, 7);
  ASSERT_EQ(found.size(), 7U);
  for (std::size_t place = 0; place < found.size(); ++place) {
    EXPECT_NEAR(found[place].reduction, slow[place].reduction, 1e-8 * slow[place].reduction);
    EXPECT_EQ(found[place].feature, slow[place].feature);
    EXPECT_EQ(found[place].threshold, slow[place].threshold);
  }
}

TEST(SplitSearchTest, NothingIsAskedWhereAllHaveOneProfile) {
  TreeWorld world(5);
  const std::vector<std::int32_t> same(30, 17);
  ExecutionContext context;
  const std::vector<double> anchor(TreeWorld::kDimension, 0.0);
  EXPECT_TRUE(best_splits(context, world.split, same, anchor, 1.0, 5).empty());
}

TEST(ProfilesTest, ThresholdsLeaveValuesOnBothSides) {
  const TreeWorld world(6);
  bool several = false;
  for (std::int64_t feature = 0; feature < world.profiles.features; ++feature) {
    const auto cuts = world.thresholds.of(feature);
    EXPECT_LE(cuts.size(), 8U);
    several = several || cuts.size() > 1;
    for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
      int below = 0;
      int above = 0;
      for (const ProfileEntry& entry : world.profiles.entries) {
        if (entry.feature == feature) ++(entry.value >= cuts[cut] ? above : below);
      }
      EXPECT_GT(below, 0);
      EXPECT_GT(above, 0);
      if (cut > 0) {
        EXPECT_GT(cuts[cut], cuts[cut - 1]);
      }
    }
  }
  EXPECT_TRUE(several);
  Profiles single;
  single.features = 1;
  single.begin = {0, 1, 2};
  single.entries = {{0, 0.5F}, {0, 0.5F}};
  EXPECT_TRUE(equal_frequency_thresholds(single).values.empty());
}

TEST(ProfilesTest, ItemsCountPraiseAgainstComplaints) {
  const std::vector<MentionCount> counts = {{1, 2, 3, 1}, {1, 0, 0, 4}, {0, 2, 1, 1}};
  const Profiles items = make_profiles(2, 3, counts, ProfileKind::kItem);
  EXPECT_FLOAT_EQ(*profile_value(items.row(1), 2), 2.0F / 8.0F);  // (3 − 1) of 8 mentions
  EXPECT_FLOAT_EQ(*profile_value(items.row(1), 0), -4.0F / 8.0F);
  EXPECT_FLOAT_EQ(*profile_value(items.row(0), 2), 0.0F);  // mentioned, undecided
  EXPECT_FALSE(profile_value(items.row(0), 0));
  const Profiles users = make_profiles(2, 3, counts, ProfileKind::kUser);
  EXPECT_FLOAT_EQ(*profile_value(users.row(1), 2), 4.0F / 8.0F);
}

}  // namespace
}  // namespace olrank
