#include "core/statistics/slate_estimates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "core/statistics/t_tests.h"
#include "tests/support/sanitized.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocs = 5;
constexpr std::int64_t kRanks = 3;

/// Plackett-Luce policies over five documents, and users who click what attracts them until they are
/// satisfied.
struct World {
  std::vector<double> logged = {0.0, 0.5, 1.0, 0.2, -0.5};
  std::vector<double> target = {1.0, 0.5, 0.0, 0.4, -0.5};
  std::vector<double> attraction = {0.8, 0.5, 0.2, 0.4, 0.1};

  static double probability(const std::vector<double>& scores, const std::vector<int>& above, int doc) {
    double sum = 0.0;
    for (int other = 0; other < kDocs; ++other) {
      if (std::find(above.begin(), above.end(), other) == above.end()) sum += std::exp(scores[other]);
    }
    return std::exp(scores[doc]) / sum;
  }
  /// A click, then an end with probability ½: what is below does not matter.
  static std::vector<double> rewards_of(const std::vector<int>& list,
                                        const std::vector<double>& attraction) {
    double left = 1.0;
    std::vector<double> rewards;
    for (const int doc : list) {
      rewards.push_back(left * attraction[doc]);
      left *= 1.0 - 0.5 * attraction[doc];
    }
    return rewards;
  }
  /// The mean reward of all lists that begin with the documents `above`.
  double value_of(const std::vector<double>& scores, const std::vector<double>& believed,
                  const std::vector<int>& above = {}) const {
    if (std::ssize(above) == kRanks) {
      const std::vector<double> rewards = rewards_of(above, believed);
      return std::accumulate(rewards.begin(), rewards.end(), 0.0);
    }
    double value = 0.0;
    for (int doc = 0; doc < kDocs; ++doc) {
      if (std::find(above.begin(), above.end(), doc) != above.end()) continue;
      std::vector<int> list = above;
      list.push_back(doc);
      value += probability(scores, above, doc) * value_of(scores, believed, list);
    }
    return value;
  }

  struct Shown {
    std::vector<double> rewards, logged, target;
    std::vector<int> list;
  };
  Shown show(RngStream& draws) const {
    Shown shown;
    std::vector<int>& list = shown.list;
    bool left = true;
    for (int rank = 0; rank < kRanks; ++rank) {
      double coin = draws.uniform();
      int chosen = -1;
      for (int doc = 0; doc < kDocs; ++doc) {
        if (std::find(list.begin(), list.end(), doc) != list.end()) continue;
        chosen = doc;
        coin -= probability(logged, list, doc);
        if (coin < 0.0) break;
      }
      shown.logged.push_back(probability(logged, list, chosen));
      shown.target.push_back(probability(target, list, chosen));
      const bool clicked = left && draws.uniform() < attraction[chosen];
      shown.rewards.push_back(clicked ? 1.0 : 0.0);
      if (clicked && draws.uniform() < 0.5) left = false;
      list.push_back(chosen);
    }
    return shown;
  }
};

RngStream draws_of(std::uint32_t number) {
  return RngStream(make_key({.seed = 41, .purpose = Purpose::kProbe}), number);
}

const SlateEstimate& of(const std::vector<SlateEstimate>& all, SlateEstimator estimator) {
  return *std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.estimator == estimator; });
}

// By the formulas, written out.
TEST(SlateEstimatesTest, AreThePrintedFormulas) {
  const World world;
  RngStream draws = draws_of(1);
  SlateEstimates estimates({.ranks = kRanks, .replicates = 0});
  double ips = 0.0, weights = 0.0, shown_reward = 0.0;
  std::vector<double> prefix(kRanks), prefix_weights(kRanks), item(kRanks), item_weights(kRanks);
  constexpr int kLists = 500;
  for (int number = 0; number < kLists; ++number) {
    const World::Shown shown = world.show(draws);
    std::vector<double> logged_item, target_item;
    for (int rank = 0; rank < kRanks; ++rank) {
      logged_item.push_back(0.1 + 0.2 * draws.uniform());
      target_item.push_back(0.3 * draws.uniform());
    }
    estimates.add({static_cast<std::uint64_t>(number), shown.rewards, shown.logged, shown.target,
                   logged_item, target_item});
    double weight = 1.0;
    double reward = 0.0;
    for (int rank = 0; rank < kRanks; ++rank) {
      weight *= shown.target[rank] / shown.logged[rank];
      reward += shown.rewards[rank];
      prefix[rank] += weight * shown.rewards[rank];
      prefix_weights[rank] += weight;
      item[rank] += target_item[rank] / logged_item[rank] * shown.rewards[rank];
      item_weights[rank] += target_item[rank] / logged_item[rank];
    }
    ips += weight * reward;
    weights += weight;
    shown_reward += reward;
  }
  const auto all = estimates.estimates();
  const auto sum = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  double self_prefix = 0.0, self_item = 0.0;
  for (int rank = 0; rank < kRanks; ++rank) {
    self_prefix += prefix[rank] / prefix_weights[rank];
    self_item += item[rank] / item_weights[rank];
  }
  EXPECT_NEAR(of(all, SlateEstimator::kIps).value.value, ips / kLists, 1e-12);
  EXPECT_NEAR(of(all, SlateEstimator::kSelfIps).value.value, ips / weights, 1e-12);
  EXPECT_NEAR(of(all, SlateEstimator::kRips).value.value, sum(prefix) / kLists, 1e-12);
  EXPECT_NEAR(of(all, SlateEstimator::kSelfRips).value.value, self_prefix, 1e-12);
  EXPECT_NEAR(of(all, SlateEstimator::kIips).value.value, sum(item) / kLists, 1e-12);
  EXPECT_NEAR(of(all, SlateEstimator::kSelfIips).value.value, self_item, 1e-12);
  EXPECT_NEAR(estimates.shown().value, shown_reward / kLists, 1e-12);
  EXPECT_NEAR(of(all, SlateEstimator::kRips).difference.value, sum(prefix) / kLists - shown_reward / kLists,
              1e-12);
  EXPECT_NEAR(estimates.support()[kRanks - 1].mean_weight, weights / kLists, 1e-12);
}

// A model that is right leaves no bias in either estimate and takes spread from the weights; one that is
// wrong takes the direct method with it, but not the doubly robust one. The same 300 logs of 500 lists.
TEST(SlateEstimatesTest, ACorrectedModelIsRightWhereItIsWrong) {
  const World world;
  const double truth = world.value_of(world.target, world.attraction);
  constexpr int kSeeds = kSanitized ? 30 : 300;
  const std::vector<std::vector<double>> models = {world.attraction, {0.4, 0.4, 0.4, 0.4, 0.4}};
  for (const std::vector<double>& model : models) {
    const bool is_right = model == world.attraction;
    const double direct = world.value_of(world.target, model);
    int covered = 0;
    double sum = 0.0, squares = 0.0, prefix_squares = 0.0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      RngStream draws = draws_of(static_cast<std::uint32_t>(100 + seed));
      SlateEstimates estimates(
          {.ranks = kRanks, .replicates = 200, .seed = static_cast<std::uint64_t>(seed)});
      for (std::uint64_t number = 0; number < 500; ++number) {
        const World::Shown shown = world.show(draws);
        const std::vector<double> expected = World::rewards_of(shown.list, model);
        ComparedList list{number, shown.rewards, shown.logged, shown.target};
        list.expected = expected;
        list.direct = direct;
        estimates.add(list);
      }
      const auto all = estimates.estimates();
      const Interval corrected = of(all, SlateEstimator::kCascadeDoublyRobust).value;
      EXPECT_NEAR(of(all, SlateEstimator::kDirect).value.value, direct, 1e-12);
      covered += corrected.low <= truth && truth <= corrected.high ? 1 : 0;
      sum += corrected.value / kSeeds;
      squares += (corrected.value - truth) * (corrected.value - truth) / kSeeds;
      const double prefixes = of(all, SlateEstimator::kRips).value.value;
      prefix_squares += (prefixes - truth) * (prefixes - truth) / kSeeds;
    }
    EXPECT_GE(covered, kSeeds * 262 / 300);
    EXPECT_NEAR(sum, truth, 4.0 * std::sqrt(squares / kSeeds));
    EXPECT_EQ(is_right, std::abs(direct - truth) < 1e-12);
    if (is_right) {
      EXPECT_LT(squares, prefix_squares);
      RecordProperty("rips", fmt::format("{:.4f}", std::sqrt(prefix_squares)));
    }
    const char* model_name = is_right ? "right" : "wrong";
    RecordProperty(fmt::format("corrected_{}", model_name),
                   fmt::format("{:.4f} {:.4f} {}", sum - truth, std::sqrt(squares), covered));
    RecordProperty(fmt::format("direct_{}", model_name), fmt::format("{:.4f}", direct - truth));
  }
}

TEST(SlateEstimatesTest, EstimatesByAModelNeedItForEachList) {
  SlateEstimates estimates({.ranks = 1, .replicates = 0});
  const std::vector<double> one = {1.0};
  const std::vector<double> half = {0.5};
  ComparedList list{0, one, one, one};
  list.expected = half;
  list.direct = 0.75;
  list.by_exposure = 0.25;
  estimates.add(list);
  const auto all = estimates.estimates();
  EXPECT_EQ(of(all, SlateEstimator::kDirect).value.value, 0.75);
  EXPECT_EQ(of(all, SlateEstimator::kCascadeDoublyRobust).value.value, 0.75 + 1.0 - 0.5);
  EXPECT_EQ(of(all, SlateEstimator::kInterventionAware).value.value, 0.25);
  estimates.add({1, one, one, one});
  for (const SlateEstimate& estimate : estimates.estimates())
    EXPECT_FALSE(goes_by_model(estimate.estimator));
}

// 300 logs of 2,000 lists, 95 % intervals: with a true coverage of 95 % fewer than 271 of 300 are covered
// with probability 1e-3. Of 500 lists they cover less, 91 to 94 %, as few of them have the large weights.
TEST(SlateEstimatesTest, IntervalsCoverTheTruth) {
  const World world;
  const double truth = world.value_of(world.target, world.attraction);
  const double shown_truth = world.value_of(world.logged, world.attraction);
  EXPECT_GT(truth, shown_truth + 0.1);
  constexpr int kSeeds = kSanitized ? 3 : 300;
  std::vector<int> covered(6), differences(6);
  std::vector<double> mean(6);
  int bounds = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    RngStream draws = draws_of(static_cast<std::uint32_t>(100 + seed));
    SlateEstimates estimates(
        {.ranks = kRanks, .replicates = 400, .seed = static_cast<std::uint64_t>(seed)});
    SlateEstimates clipped({.ranks = kRanks, .replicates = 0, .clip = 5.0});
    for (std::uint64_t number = 0; number < 2000; ++number) {
      const World::Shown shown = world.show(draws);
      estimates.add({number, shown.rewards, shown.logged, shown.target});
      clipped.add({number, shown.rewards, shown.logged, shown.target});
    }
    for (const SlateEstimate& one : estimates.estimates()) {
      const auto place = static_cast<std::size_t>(one.estimator);
      covered[place] += one.value.low <= truth && truth <= one.value.high ? 1 : 0;
      differences[place] +=
          one.difference.low <= truth - shown_truth && truth - shown_truth <= one.difference.high ? 1 : 0;
      mean[place] += one.value.value / kSeeds;
    }
    bounds += clipped.lower_bound() <= truth ? 1 : 0;
  }
  if (kSanitized) return;  // so few say nothing of a share
  for (const SlateEstimator estimator :
       {SlateEstimator::kIps, SlateEstimator::kRips, SlateEstimator::kSelfIps, SlateEstimator::kSelfRips}) {
    const auto place = static_cast<std::size_t>(estimator);
    EXPECT_GE(covered[place], 271) << name_of(estimator);
    RecordProperty(fmt::format("covered_{}", name_of(estimator)),
                   fmt::format("{} {}", covered[place], differences[place]));
    EXPECT_GE(differences[place], 271) << name_of(estimator);
    EXPECT_NEAR(mean[place], truth, 0.01) << name_of(estimator);
  }
  EXPECT_EQ(bounds, kSeeds);
}

TEST(SlateEstimatesTest, TellsWhatTheLogDoesNotCover) {
  SlateEstimates estimates({.ranks = 2, .replicates = 50});
  // The other policy always shows what one list in four had.
  for (std::uint64_t number = 0; number < 400; ++number) {
    const bool same = number % 4 == 0;
    const std::vector<double> rewards = {same ? 1.0 : 0.0, 0.0};
    const std::vector<double> target = {same ? 1.0 : 0.0, 1.0};
    estimates.add({number, rewards, std::vector<double>{0.25, 1.0}, target});
  }
  const auto support = estimates.support();
  EXPECT_NEAR(support[0].mean_weight, 1.0, 1e-12);
  EXPECT_NEAR(support[0].without_weight, 0.75, 1e-12);
  EXPECT_NEAR(support[1].effective_lists, 100.0, 1e-9);
  EXPECT_EQ(support[1].largest_weight, 4.0);
  EXPECT_EQ(estimates.whole_support().effective_lists, support[1].effective_lists);
  EXPECT_NEAR(of(estimates.estimates(), SlateEstimator::kSelfRips).value.value, 1.0, 1e-12);
}

// Student's interval of the mean is exact for normal rewards, and forty of them say little of their own
// spread. The plain percentiles of 200 replicates are 0.946 times as far apart, and cover 93.5 %.
TEST(SlateEstimatesTest, IntervalsOfFewQueriesAreAsWideAsStudents) {
  constexpr int kSeeds = kSanitized ? 20 : 500;
  constexpr std::uint64_t kQueries = 40;
  const double t = student_t_quantile(0.975, kQueries - 1.0);
  int covered = 0;
  double wider = 0.0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    RngStream draws = draws_of(static_cast<std::uint32_t>(1000 + seed));
    SlateEstimates estimates({.ranks = 1, .replicates = 200, .seed = static_cast<std::uint64_t>(seed)});
    double sum = 0.0, squares = 0.0;
    for (std::uint64_t query = 0; query < kQueries; ++query) {
      const std::vector<double> reward = {draws.normal()};
      const std::vector<double> one = {1.0};
      estimates.add({query, reward, one, one});
      sum += reward.front();
      squares += reward.front() * reward.front();
    }
    const double variance = (squares - sum * sum / kQueries) / (kQueries - 1.0);
    const Interval shown = estimates.shown();
    covered += shown.low <= 0.0 && 0.0 <= shown.high ? 1 : 0;
    wider += (shown.high - shown.low) / (2.0 * t * std::sqrt(variance / kQueries)) / kSeeds;
  }
  if (kSanitized) return;
  EXPECT_GE(covered, 460);  // of 475, with a deviation of 5
  EXPECT_LE(covered, 490);
  EXPECT_GT(wider, 1.0);
  EXPECT_LT(wider, 1.06);
}

TEST(SlateEstimatesTest, RedrawsClustersTogether) {
  // Thirty queries of a hundred equal lists each: the spread is that of thirty numbers.
  SlateEstimates together({.ranks = 1, .replicates = 400});
  SlateEstimates apart({.ranks = 1, .replicates = 400});
  const std::vector<double> one = {1.0};
  for (std::uint64_t list = 0; list < 3000; ++list) {
    const std::vector<double> reward = {list / 100 < 15 ? 1.0 : 0.0};
    together.add({list / 100, reward, one, one});
    apart.add({list, reward, one, one});
  }
  EXPECT_GT(together.shown().high - together.shown().low, 0.25);
  EXPECT_LT(apart.shown().high - apart.shown().low, 0.1);
}

TEST(SlateEstimatesTest, GivesNoIntervalsToFewQueriesAndTakesNoWeightBeyondNumbers) {
  SlateEstimates estimates({.ranks = 2, .replicates = 50});
  const std::vector<double> rewards = {1.0, 0.0};
  const std::vector<double> sure = {1.0, 1.0};
  for (std::uint64_t list = 0; list < 190; ++list) estimates.add({list / 10, rewards, sure, sure});
  EXPECT_TRUE(std::isnan(estimates.shown().low));
  EXPECT_THROW(estimates.add({1, rewards, std::vector<double>{1e-200, 1e-200}, sure}), InvalidArgument);
  EXPECT_EQ(estimates.lists(), 190);
  // A list that the other policy never shows weighs nothing, however small its probability in the log.
  const std::vector<double> tiny = {1e-320, 1e-320};
  EXPECT_FALSE(estimates.can_weigh({1, rewards, tiny, sure}));
  EXPECT_TRUE(estimates.can_weigh({1, rewards, tiny, std::vector<double>{0.0, 1.0}}));
  EXPECT_TRUE(estimates.can_weigh({1, rewards, {}, sure}));
  SlateEstimates clipped({.ranks = 2, .replicates = 50, .clip = 5.0});
  clipped.add({1, rewards, tiny, sure});
  EXPECT_EQ(clipped.whole_support().largest_weight, 5.0);
  EXPECT_EQ(clipped.estimates().front().value.value, 5.0);
  estimates.add({77, rewards, sure, sure});
  EXPECT_EQ(estimates.shown().low, 1.0);
  // A list of one rank among those of two.
  estimates.add({78, std::vector<double>{1.0}, std::vector<double>{0.5}, std::vector<double>{1.0}});
  EXPECT_EQ(estimates.whole_support().largest_weight, 2.0);
  EXPECT_EQ(estimates.support()[1].largest_weight, 1.0);
}

}  // namespace
}  // namespace olrank
