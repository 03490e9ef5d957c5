#include "sim/click_models.h"

#include <gtest/gtest.h>

#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

const DynamicBayesianTable kTable = {{0.2, 0.5, 0.9}, {0.1, 0.4, 0.7}, 0.8};

double observed(double click, double noise) {
  return click * (1.0 - noise) + (1.0 - click) * noise;
}

/// P(pattern): a run of examined ranks, and why it ends.
std::vector<double> pattern_probabilities(double noise, const std::vector<std::uint8_t>& grades) {
  const std::size_t docs = grades.size();
  std::vector<double> probabilities(std::size_t{1} << (2 * docs), 0.0);
  for (std::size_t clicks = 0; clicks < std::size_t{1} << docs; ++clicks) {
    double reached = 1.0;  // P(the clicks above, and this rank is examined)
    std::size_t pattern = 0;
    for (std::size_t rank = 0; rank < docs; ++rank) {
      const bool clicked = (clicks >> rank & 1) != 0;
      const double click = observed(kTable.attraction[grades[rank]], noise);
      const double seen = reached * (clicked ? click : 1.0 - click);
      pattern |= std::size_t{clicked ? 3U : 2U} << (2 * rank);
      const double on = kTable.perseverance * (clicked ? 1.0 - kTable.satisfaction[grades[rank]] : 1.0);
      // Each pattern that ends here comes up once for each choice of the clicks below; count the first.
      if (clicks >> (rank + 1) == 0) probabilities[pattern] += seen * (rank + 1 < docs ? 1.0 - on : 1.0);
      reached = seen * on;
    }
  }
  return probabilities;
}

/// One statistic a setting, two in all: a false alarm in 2e-10 of all keys.
TEST(DynamicBayesianClickModelTest, LogsHaveExactProbabilities) {
  const std::vector<std::uint8_t> grades = {1, 0, 2, 1};
  for (const double noise : {0.0, 0.15}) {
    const auto counts = pattern_counts(DynamicBayesianClickModel(kTable, noise), grades, 100'000);
    const std::vector<double> probabilities = pattern_probabilities(noise, grades);
    double total = 0.0;
    for (const double probability : probabilities) total += probability;
    ASSERT_NEAR(total, 1.0, 1e-12);
    const ChiSquare logs = chi_square(counts, probabilities);
    EXPECT_FALSE(logs.impossible_seen);
    EXPECT_GE(logs.degrees, 20);
    EXPECT_LE(logs.statistic, logs.bound(kTail)) << noise;
  }
}

TEST(DynamicBayesianClickModelTest, WithoutImpatienceIsTheDependentModel) {
  DynamicBayesianTable patient = kTable;
  patient.perseverance = 1.0;
  const DynamicBayesianClickModel user(patient, 0.1);
  const DependentClickModel dependent({kTable.attraction, kTable.satisfaction}, StopDraw::kAfterClick, 0.1);
  const std::vector<std::uint8_t> grades = {0, 2, 1, 0, 2, 1};
  ClickLog other;
  std::uint32_t round = 0;
  play(user, grades, 500, [&](const ClickLog& log) {
    dependent.click({grades}, in_order(grades.size()), user_key(), ++round, other);
    ASSERT_EQ(log.clicks, other.clicks);
    ASSERT_EQ(log.examined, other.examined);
  });
}

TEST(DynamicBayesianClickModelTest, StopsAtOnceWithoutPerseverance) {
  const std::vector<std::uint8_t> grades = {0, 1, 1};
  ClickLog log;
  DynamicBayesianClickModel({{0.0, 1.0}, {}, 0.0}, 0.0).click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.examined, (std::vector<std::uint8_t>{1, 0, 0}));
  DynamicBayesianClickModel({{0.0, 1.0}, {}, 1.0}, 0.0).click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{0, 1, 1}));
}

}  // namespace
}  // namespace olrank
