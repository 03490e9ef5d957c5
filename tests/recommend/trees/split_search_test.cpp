#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"
#include "recommend/trees/pair_source.h"
#include "recommend/trees/squared_sums.h"
#include "recommend/trees/tree_growth.h"
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
  const std::vector<MentionCount> counts =
      added_up({{1, 2, 1, 1}, {1, 0, 0, 4}, {0, 2, 1, 1}, {1, 2, 2, 0}});
  const Profiles items = make_profiles(2, 3, counts, ProfileKind::kItem);
  EXPECT_FLOAT_EQ(*profile_value(items.row(1), 2), 2.0F / 8.0F);  // (3 − 1) of 8 mentions
  EXPECT_FLOAT_EQ(*profile_value(items.row(1), 0), -4.0F / 8.0F);
  EXPECT_FLOAT_EQ(*profile_value(items.row(0), 2), 0.0F);  // mentioned, undecided
  EXPECT_FALSE(profile_value(items.row(0), 0));
  const Profiles users = make_profiles(2, 3, counts, ProfileKind::kUser);
  EXPECT_FLOAT_EQ(*profile_value(users.row(1), 2), 4.0F / 8.0F);
}

// The slow formula.
double ridge_objective(const TreeWorld& world, std::int64_t user, const std::vector<double>& x,
                       double lambda, const std::vector<double>& anchor) {
  double sum = squared_error_of(world, user, x);
  for (std::size_t k = 0; k < x.size(); ++k) sum += lambda * (x[k] - anchor[k]) * (x[k] - anchor[k]);
  return sum;
}

TEST(SquaredSumsTest, ClosedFormIsWhereDescentEnds) {
  const TreeWorld world(7);
  const std::vector<double> sums = squared_sums_of_rows(world.data.by_user, world.items);
  const std::int64_t size = squared_sums_size(TreeWorld::kDimension);
  RidgeSolver solver(TreeWorld::kDimension);
  const double lambda = 0.7;
  for (std::int64_t user = 0; user < 10; ++user) {
    const std::vector<double> anchor = {0.3, -0.2, 0.5, 0.1};
    const std::span<const double> of_user(sums.data() + user * size, static_cast<std::size_t>(size));
    std::vector<double> closed(TreeWorld::kDimension);
    solver.minimise(of_user, lambda, anchor, closed);
    // Plain descent with numerical gradients of the slow formula.
    std::vector<double> x = anchor;
    double curvature = lambda;
    for (const std::int32_t item : world.data.by_user.others_of(user)) {
      for (const float v : world.items.row(item)) curvature += static_cast<double>(v) * v;
    }
    for (int step = 0; step < 3000; ++step) {
      std::vector<double> gradient(x.size());
      for (std::size_t k = 0; k < x.size(); ++k) {
        std::vector<double> ahead = x;
        std::vector<double> behind = x;
        ahead[k] += 1e-4;
        behind[k] -= 1e-4;
        gradient[k] = (ridge_objective(world, user, ahead, lambda, anchor) -
                       ridge_objective(world, user, behind, lambda, anchor)) /
                      2e-4;
      }
      for (std::size_t k = 0; k < x.size(); ++k) x[k] -= 0.5 * gradient[k] / curvature;
    }
    // Central differences of a quadratic are exact but for rounding, 1e-13 · 100 / 1e-4 of a slope.
    for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(closed[k], x[k], 1e-5);
    const double fall = ridge_objective(world, user, anchor, lambda, anchor) -
                        ridge_objective(world, user, closed, lambda, anchor);
    EXPECT_NEAR(solver.reduction(of_user, lambda, anchor), fall, 1e-9 * (1.0 + fall));
    EXPECT_NEAR(squared_error(of_user, closed), ridge_objective(world, user, closed, 0.0, anchor), 1e-9);
  }
}

using Factors = std::array<std::vector<double>, kTreeBranches>;

TEST(ItemPairsTest, PairsAreOfD) {
  const TreeWorld world(11);
  const auto pairs = sample_preference_pairs(world.data.by_user, world.data.by_item.rows(), 2, 1, 1);
  EXPECT_GT(std::ssize(pairs), world.reviews.size());
  bool rated_loser = false;
  for (const ItemPair& pair : pairs) {
    const auto winner = rating_of(world.data.by_user, pair.user, pair.winner);
    const auto loser = rating_of(world.data.by_user, pair.user, pair.loser);
    ASSERT_TRUE(winner);
    if (loser) {
      rated_loser = true;
      EXPECT_GT(*winner, *loser);
    }
  }
  EXPECT_TRUE(rated_loser);
  const auto other_pass = sample_preference_pairs(world.data.by_user, world.data.by_item.rows(), 2, 1, 2);
  EXPECT_FALSE(std::ranges::equal(pairs, other_pass, [](const auto& a, const auto& b) {
    return a.winner == b.winner && a.loser == b.loser;
  }));
}

// The loss of all pairs that concern the rows, by the slow formula: items in a part have its factor.
double slow_item_loss(std::span<const ItemPair> pairs, std::span<const std::int32_t> rows,
                      std::span<const std::uint8_t> part_of, const Factors& factors,
                      const FactorRows& users, const FactorRows& current) {
  const auto score = [&](std::int32_t user, std::int32_t item) {
    const auto place = std::ranges::find(rows, item);
    double sum = 0.0;
    for (int k = 0; k < TreeWorld::kDimension; ++k) {
      const double v =
          place == rows.end() ? current.row(item)[k] : factors[part_of[place - rows.begin()]][k];
      sum += users.row(user)[k] * v;
    }
    return sum;
  };
  double loss = 0.0;
  for (const ItemPair& pair : pairs) {
    const bool concerns =
        std::ranges::count(rows, pair.winner) > 0 || std::ranges::count(rows, pair.loser) > 0;
    if (concerns)
      loss += std::log1p(std::exp(score(pair.user, pair.loser) - score(pair.user, pair.winner)));
  }
  return loss;
}

TEST(PartFitTest, LossOfItemPairsIsThatOfTheFormula) {
  const TreeWorld world(12);
  const auto pairs = sample_preference_pairs(world.data.by_user, world.data.by_item.rows(), 1, 1, 1);
  FactorRows users(world.data.by_user.rows(), TreeWorld::kDimension);
  for (std::int64_t user = 0; user < users.rows(); ++user) {
    for (int k = 0; k < TreeWorld::kDimension; ++k)
      users.row(user)[k] = static_cast<float>(std::sin(static_cast<double>(user * 7 + k)));
  }
  std::vector<std::int32_t> rows;
  std::vector<std::uint8_t> part_of;
  for (std::int32_t item = 0; item < 60; ++item) {
    rows.push_back(item * 2);
    part_of.push_back(static_cast<std::uint8_t>(item % 3));
  }
  const Factors factors = {
      std::vector<double>{0.5, -0.25, 0.125, 1.0}, {-0.5, 0.75, 0.25, 0.5}, {0.25, 0.25, -1.0, 0.5}};
  const ItemPairs source(pairs, world.data.by_item.rows(), users);
  const NodePairs gathered = source.gather(rows, world.items);
  const double slow = slow_item_loss(pairs, rows, part_of, factors, users, world.items);
  // Products are in float.
  EXPECT_NEAR(pair_loss_of_parts(gathered, part_of, factors), slow, 1e-5 * slow);
}

TEST(PartFitTest, DescentWithPairsComesCloseToTheMinimumAndNeverRises) {
  const TreeWorld world(13);
  const auto pairs = sample_preference_pairs(world.data.by_user, world.data.by_item.rows(), 1, 1, 1);
  const UserPairs source(pairs, world.data.by_user.rows(), world.items);
  const NodePairs gathered = source.gather(world.rows, world.items);
  const auto part_of = parts_of_rows(world.split, world.rows, 0, 0);
  Factors sums;
  sums.fill(std::vector<double>(squared_sums_size(TreeWorld::kDimension), 0.0));
  std::array<std::int64_t, kTreeBranches> rows{};
  for (std::size_t place = 0; place < part_of.size(); ++place) {
    add_sums(sums[part_of[place]], world.split.sums_of(world.rows[place]));
    ++rows[part_of[place]];
  }
  const std::vector<double> zero(TreeWorld::kDimension, 0.0);
  const auto fit_with = [&](int steps) {
    return fit_parts(sums, rows, zero, zero, 1.0, gathered, part_of,
                     {.pair_weight = 3.0, .steps = steps, .step_size = 0.1});
  };
  const PartFit closed = fit_with(0);
  const PartFit usual = fit_with(30);
  const PartFit longest = fit_with(3000);
  EXPECT_LT(usual.objective, closed.objective);
  EXPECT_LE(longest.objective, usual.objective);
  // 30 steps gain most of what there is to gain.
  EXPECT_LT(usual.objective - longest.objective, 0.2 * (closed.objective - longest.objective));
  // At the end, the objective has no slope, by the slow formula of users' pairs.
  const auto slow = [&](const Factors& factors) {
    double objective = 0.0;
    for (int part = 0; part < kTreeBranches; ++part) {
      if (rows[part] == 0) continue;
      objective += squared_error(sums[part], factors[part]);
      for (const double x : factors[part]) objective += x * x;
    }
    for (const ItemPair& pair : pairs) {
      double z = 0.0;
      for (int k = 0; k < TreeWorld::kDimension; ++k) {
        z += factors[part_of[pair.user]][k] *
             (static_cast<double>(world.items.row(pair.winner)[k]) - world.items.row(pair.loser)[k]);
      }
      objective += 3.0 * std::log1p(std::exp(-z));
    }
    return objective;
  };
  EXPECT_NEAR(slow(longest.factors), longest.objective, 1e-5 * longest.objective);
  for (int part = 0; part < kTreeBranches; ++part) {
    if (rows[part] == 0) continue;
    for (int k = 0; k < TreeWorld::kDimension; ++k) {
      Factors ahead = longest.factors;
      Factors behind = longest.factors;
      ahead[part][k] += 1e-3;
      behind[part][k] -= 1e-3;
      const double slope = (slow(ahead) - slow(behind)) / 2e-3;
      // Against slopes of thousands at the start.
      EXPECT_LT(std::fabs(slope), 1.0);
    }
  }
}

}  // namespace
}  // namespace olrank
