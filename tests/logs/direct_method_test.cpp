#include "logs/direct_method.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

RngStream draws_of(std::uint32_t number) {
  return RngStream(make_key({.seed = 43, .purpose = Purpose::kProbe}), number);
}

// Five documents, each at all ranks, users who examine by rank.
class DirectMethodTest : public ::testing::Test {
 protected:
  static constexpr int kDocs = 5;
  static constexpr int kRanks = 3;
  static constexpr std::array<double, kDocs> kAttraction = {0.8, 0.6, 0.4, 0.2, 0.1};
  static constexpr std::array<double, kRanks> kExamination = {1.0, 0.6, 0.3};

  static DirectMethod fitted(ClickReward reward, int lists = 20'000, int docs = kDocs) {
    DirectMethod method(FittedModel::kPosition, reward, kRanks);
    RngStream draws = draws_of(1);
    for (int list = 0; list < lists; ++list) {
      std::vector<std::int32_t> shown(docs);
      for (int doc = 0; doc < docs; ++doc) shown[doc] = doc;
      draws.shuffle(std::span(shown));
      std::vector<std::uint8_t> clicks;
      double worth = 0.0;
      for (int rank = 0; rank < kRanks; ++rank) {
        clicks.push_back(draws.uniform() < kExamination[rank] * kAttraction[shown[rank]] ? 1 : 0);
        worth += 3.0 * clicks.back();
      }
      method.add(std::span(shown).first(kRanks), clicks, worth);
    }
    method.fit({.count = docs});
    return method;
  }
  static double click(int rank, int doc) { return kExamination[rank] * kAttraction[doc]; }
};

TEST_F(DirectMethodTest, KnowsWhatListsAreWorth) {
  const std::vector<std::int32_t> list = {4, 0, 2};
  const double first = click(0, 4), second = click(1, 0), third = click(2, 2);
  const std::array<double, 4> truths = {
      first + second + third, first + second / std::log2(3.0) + third / 2.0,
      1.0 - (1.0 - first) * (1.0 - second) * (1.0 - third), 3.0 * (first + second + third)};
  std::size_t place = 0;
  for (const auto& [reward, name] : EnumNames<ClickReward>::values) {
    DirectMethod method = fitted(reward);
    const DirectMethod::Forecast told = method.forecast(list);
    EXPECT_NEAR(told.reward, truths[place], 0.02 * truths[place] + 0.01) << name;
    EXPECT_NEAR(told.by_exposure, truths[place], 0.02 * truths[place] + 0.01) << name;
    EXPECT_EQ(told.unseen, 0.0);
    std::vector<double> ranks(kRanks);
    method.expect(list, ranks);
    EXPECT_NEAR(ranks[0] + ranks[1] + ranks[2], told.reward, 1e-12) << name;
    ++place;
  }
}

TEST_F(DirectMethodTest, SaysWhatWasNeverShown) {
  DirectMethod method = fitted(ClickReward::kClicks, 20'000, 4);  // without the last document
  const std::vector<std::int32_t> list = {0, 4, -1};
  const DirectMethod::Forecast told = method.forecast(list);
  EXPECT_NEAR(told.unseen, 0.9 / 1.9, 0.02);
  // Those have the clicks of the mean document, 0.5 of the four.
  EXPECT_NEAR(told.reward, 0.8 + 0.9 * 0.5, 0.03);
  EXPECT_NEAR(told.by_exposure, told.reward, 0.03);
}

TEST_F(DirectMethodTest, NeedsAClick) {
  DirectMethod method(FittedModel::kPosition, ClickReward::kClicks, kRanks);
  const std::vector<std::int32_t> docs = {0, 1};
  const std::vector<std::uint8_t> clicks = {0, 0};
  method.add(docs, clicks, 0.0);
  EXPECT_THROW(method.fit({.count = 2}), InvalidArgument);
}

// 60,000 draws: the share of each list is within 4.5 deviations of its probability, which 120 lists leave
// with probability below 1e-3.
TEST(ListPolicyTest, DrawsListsWithTheProbabilitiesThatItSays) {
  const std::vector<double> scores = {0.5, 0.0, 0.5, -1.0};
  for (const char* name : {"greedy", "plackett-luce", "epsilon=0.3"}) {
    const ListPolicy policy = ListPolicy::parse(name);
    constexpr int kDraws = 60'000;
    std::array<int, 64> counts{};
    for (int draw = 0; draw < kDraws; ++draw) {
      RngStream coins = draws_of(static_cast<std::uint32_t>(draw));
      std::array<std::int32_t, 3> list{};
      policy.draw(scores, coins, list);
      ++counts[16 * list[0] + 4 * list[1] + list[2]];
    }
    for (std::int32_t code = 0; code < 64; ++code) {
      const std::array<std::int32_t, 3> list = {code / 16, code / 4 % 4, code % 4};
      if (list[0] == list[1] || list[0] == list[2] || list[1] == list[2]) {
        EXPECT_EQ(counts[code], 0);
        continue;
      }
      std::array<double, 3> given{};
      policy.probabilities(scores, list, given);
      const double p = given[0] * given[1] * given[2];
      EXPECT_NEAR(counts[code], kDraws * p, 4.5 * std::sqrt(kDraws * p * (1.0 - p)) + 1e-9)
          << name << ' ' << code;
    }
  }
}

}  // namespace
}  // namespace olrank
