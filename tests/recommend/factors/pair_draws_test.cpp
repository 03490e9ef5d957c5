#include "recommend/factors/pair_draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/random/rng_stream.h"
#include "recommend/factors/efm.h"
#include "recommend/factors/factor_matrix.h"

namespace olrank {
namespace {

TEST(PairDrawsTest, DrawsOnlyPreferencesAndEveryReviewAsOften) {
  Reviews reviews;
  for (int item = 0; item < 30; ++item) reviews.names.items.intern("i" + std::to_string(item));
  for (int user = 0; user < 8; ++user) {
    const std::int32_t by = reviews.names.users.intern("u" + std::to_string(user));
    for (int item = 0; item < 5; ++item)
      reviews.add(by, (3 * user + 4 * item) % 30, static_cast<float>(1 + item), {});
  }
  std::vector<std::int64_t> all(reviews.size());
  for (std::int64_t review = 0; review < reviews.size(); ++review) all[review] = review;
  const TrainingData data = make_training_data(reviews, all);
  const PairDraws draws(data.by_user, 30);
  const auto rating = [&](std::int32_t user, std::int32_t item) {
    const auto own = data.by_user.others_of(user);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] == item) return data.by_user.ratings_of(user)[i];
    }
    return 0.0F;
  };
  std::map<std::pair<int, int>, int> winners;
  bool rated_loser = false;
  constexpr std::int64_t kCount = 400;
  std::vector<ItemPair> pairs(kCount);
  for (std::uint32_t iteration = 0; iteration < 50; ++iteration) {
    for (std::int64_t begin = 0; begin < kCount; begin += PairDraws::kBlock) {
      draws.draw(make_key({.seed = 1}), iteration, begin, kCount,
                 std::span(pairs).subspan(begin, std::min(PairDraws::kBlock, kCount - begin)));
    }
    for (std::size_t s = 0; s < pairs.size(); ++s) {
      ASSERT_GT(rating(pairs[s].user, pairs[s].winner), rating(pairs[s].user, pairs[s].loser));
      ASSERT_GE(pairs[s].user, pairs[std::max<std::size_t>(s, 1) - 1].user);
      rated_loser = rated_loser || rating(pairs[s].user, pairs[s].loser) > 0.0F;
      ++winners[{pairs[s].user, pairs[s].winner}];
    }
  }
  EXPECT_TRUE(rated_loser);
  ASSERT_EQ(winners.size(), 40U);
  for (const auto& [pair, count] : winners) EXPECT_EQ(count, 500);  // ten of 400 in each iteration
}

TEST(PairLossBlockTest, SlopesAndLossAreThoseOfTheFormula) {
  std::vector<float> differences;
  for (int i = -200; i <= 200; ++i) differences.push_back(0.2F * static_cast<float>(i));
  std::vector<float> slopes(differences.size());
  const double loss = pair_slopes(differences, 1.5, slopes);
  double expected = 0.0;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const double z = differences[i];
    expected += std::log1p(std::exp(-z));
    EXPECT_NEAR(slopes[i], -1.5 / (1.0 + std::exp(z)), 1e-6);
  }
  EXPECT_NEAR(loss, expected, 1e-9 * expected);
}

TEST(RowIndexTest, GroupsSamplesInTheirOrder) {
  RowIndex index;
  const std::vector<std::int32_t> rows = {2, 0, -1, 2, 4, 0};
  index.build(rows, 5);
  EXPECT_EQ(std::vector<std::int32_t>(index.samples_of(0).begin(), index.samples_of(0).end()),
            (std::vector<std::int32_t>{1, 5}));
  EXPECT_TRUE(index.samples_of(1).empty());
  EXPECT_EQ(std::vector<std::int32_t>(index.samples_of(2).begin(), index.samples_of(2).end()),
            (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(index.samples_of(4).size(), 1U);
}

TEST(AdagradTest, FollowsTheFormulaAndProjects) {
  std::vector<float> gradient(33);
  std::vector<float> theta(33);
  std::vector<float> squares(33, 0.5F);
  for (int i = 0; i < 33; ++i) {
    gradient[i] = 0.1F * static_cast<float>(i - 16);
    theta[i] = 0.05F;
  }
  std::vector<float> moved = theta;
  std::vector<float> seen = squares;
  adagrad_step(0.1F, true, gradient.data(), seen.data(), moved.data(), 33);
  for (int i = 0; i < 33; ++i) {
    const double square = 0.5 + double{gradient[i]} * gradient[i];
    EXPECT_NEAR(seen[i], square, 1e-6);
    EXPECT_NEAR(moved[i], std::max(0.05 - 0.1 * gradient[i] / std::sqrt(square), 0.0), 1e-6);
  }
}

/// The minimum over x ≥ 0 of a strictly convex function is where no coordinate can improve alone.
TEST(NonnegativeRowTest, SolutionsMeetTheConditionsOfTheMinimum) {
  RngStream random(make_key({.seed = 9}), 0);
  NonnegativeRow row(4);
  std::vector<std::vector<float>> f(40, std::vector<float>(4));
  std::vector<double> targets(40);
  for (int o = 0; o < 40; ++o) {
    for (float& value : f[o]) value = static_cast<float>(random.uniform());
    targets[o] = 2.0 * f[o][0] - 1.5 * f[o][2] + 0.3 * random.normal();
    row.add(f[o], targets[o], 0.7);
  }
  std::vector<float> x(4, 0.5F);
  for (int round = 0; round < 20; ++round) row.solve(0.2, x);
  for (int i = 0; i < 4; ++i) {
    double slope = 2.0 * 0.2 * x[i];
    for (int o = 0; o < 40; ++o) {
      double error = -targets[o];
      for (int j = 0; j < 4; ++j) error += double{f[o][j]} * x[j];
      slope += 2.0 * 0.7 * error * f[o][i];
    }
    EXPECT_GE(slope, -1e-4);
    EXPECT_NEAR(slope * x[i], 0.0, 1e-4);
  }
  EXPECT_EQ(x[2], 0.0F);
}

}  // namespace
}  // namespace olrank
