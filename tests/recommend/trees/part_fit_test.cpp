#include "recommend/trees/pair_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/recommend/trees/tree_world.h"

namespace olrank {
namespace {

using Factors = std::array<std::vector<double>, kTreeBranches>;

TEST(PreferencePairsTest, PairsAreOfD) {
  const TreeWorld world(11);
  const auto pairs = sample_preference_pairs(world.data.by_user, world.data.by_item.rows(), 2, 1, 1);
  EXPECT_GT(std::ssize(pairs), world.reviews.size());
  bool rated_loser = false;
  for (const PreferencePair& pair : pairs) {
    std::optional<float> winner;
    std::optional<float> loser;
    const auto rated = world.data.by_user.others_of(pair.user);
    for (std::size_t place = 0; place < rated.size(); ++place) {
      if (rated[place] == pair.winner) winner = world.data.by_user.ratings_of(pair.user)[place];
      if (rated[place] == pair.loser) loser = world.data.by_user.ratings_of(pair.user)[place];
    }
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
double slow_item_loss(const TreeWorld& world, std::span<const PreferencePair> pairs,
                      std::span<const std::int32_t> rows, std::span<const std::uint8_t> part_of,
                      const Factors& factors, const FactorRows& users, const FactorRows& current) {
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
  for (const PreferencePair& pair : pairs) {
    const bool concerns =
        std::ranges::count(rows, pair.winner) > 0 || std::ranges::count(rows, pair.loser) > 0;
    if (concerns)
      loss += std::log1p(std::exp(score(pair.user, pair.loser) - score(pair.user, pair.winner)));
  }
  EXPECT_GT(world.reviews.size(), 0);
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
  const double slow = slow_item_loss(world, pairs, rows, part_of, factors, users, world.items);
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
    for (const PreferencePair& pair : pairs) {
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
