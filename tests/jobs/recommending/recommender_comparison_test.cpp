#include "jobs/recommending/recommender_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace olrank {
namespace {

RankingFigures figures_of(const std::vector<double>& ndcg) {
  RankingFigures figures;
  figures.cutoffs = {50};
  figures.users = {0, 1, 2};
  figures.ndcg = {ndcg};
  figures.hits = {{1.0, 1.0, 1.0}};
  return figures;
}

TEST(RecommenderComparison, GivesThePValuesComputedByHand) {
  // Three differences have two degrees of freedom, where p = 1 − |t|/√(t² + 2).
  // 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, t = 2√3, p = 1 − √12/√14.
  // 0.1, 0.1, 0.4: mean 0.2, deviation √0.03, t = 2, p = 1 − 2/√6.
  const double smaller = 1.0 - std::sqrt(12.0 / 14.0);
  const double larger = 1.0 - 2.0 / std::sqrt(6.0);
  const std::vector<RankingFigures> judged = {figures_of({0.1, 0.2, 0.3}), figures_of({0.2, 0.3, 0.7}),
                                              figures_of({0.2, 0.4, 0.6})};
  const std::vector<nlohmann::ordered_json> compared = compared_with_first(judged);
  ASSERT_EQ(compared.size(), 2U);
  EXPECT_NEAR(compared[0]["ndcg@50"]["difference"].get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(compared[0]["ndcg@50"]["p"].get<double>(), larger, 1e-9);
  EXPECT_NEAR(compared[1]["ndcg@50"]["p"].get<double>(), smaller, 1e-9);
  // Hits are equal, so p = 1 twice. Four tests: the smallest p times 4, the next times 3.
  EXPECT_EQ(compared[0]["hit@50"]["p"].get<double>(), 1.0);
  EXPECT_NEAR(compared[1]["ndcg@50"]["p_holm"].get<double>(), 4.0 * smaller, 1e-9);
  EXPECT_NEAR(compared[0]["ndcg@50"]["p_holm"].get<double>(), 3.0 * larger, 1e-9);
  EXPECT_EQ(compared[1]["hit@50"]["p_holm"].get<double>(), 1.0);
}

TEST(RecommenderComparison, ComparesNothingWithASingleRecommender) {
  const std::vector<RankingFigures> judged = {figures_of({0.1, 0.2, 0.3})};
  EXPECT_TRUE(compared_with_first(judged).empty());
}

}  // namespace
}  // namespace olrank
