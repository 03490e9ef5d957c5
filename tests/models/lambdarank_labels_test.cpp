#include "models/lambdarank_labels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/linear/linear_model.h"
#include "models/ranker_factory.h"
#include "tests/models/labelled_world.h"

namespace olrank {
namespace {

double gain_of(int grade) {
  return std::pow(2.0, grade) - 1.0;
}

double dcg_of(const std::vector<int>& grades) {
  double sum = 0.0;
  for (std::size_t rank = 0; rank < grades.size(); ++rank) {
    sum += gain_of(grades[rank]) / std::log2(static_cast<double>(rank) + 2.0);
  }
  return sum;
}

/// Swaps the two documents of every pair in the list and takes the difference of two whole NDCGs.
std::vector<double> slow_weights(const std::vector<double>& scores,
                                 const std::vector<std::uint8_t>& grades) {
  const std::size_t docs = scores.size();
  std::vector<std::size_t> order(docs);
  for (std::size_t doc = 0; doc < docs; ++doc) order[doc] = doc;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<int> shown;
  for (const std::size_t doc : order) shown.push_back(grades[doc]);
  std::vector<int> ideal = shown;
  std::sort(ideal.rbegin(), ideal.rend());
  std::vector<double> weights(docs, 0.0);
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = 0; b < docs; ++b) {
      const std::size_t winner = order[a];
      const std::size_t loser = order[b];
      if (grades[winner] <= grades[loser]) continue;
      std::vector<int> swapped = shown;
      std::swap(swapped[a], swapped[b]);
      const double change = std::fabs(dcg_of(shown) - dcg_of(swapped)) / dcg_of(ideal);
      const double weight = change / (1.0 + std::exp(scores[winner] - scores[loser]));
      weights[winner] += weight;
      weights[loser] -= weight;
    }
  }
  return weights;
}

TEST(LambdaRankWeightsTest, EqualTheSumOverAllPairsOfDifferentGrades) {
  RngStream draws(make_key({.seed = 4, .purpose = Purpose::kSynthetic}), 0);
  Scratch scratch;
  for (const std::size_t docs : {1U, 2U, 3U, 17U, 40U}) {
    for (const std::uint32_t levels : {1U, 2U, 5U}) {
      std::vector<double> scores(docs);
      std::vector<std::uint8_t> grades(docs);
      for (std::size_t doc = 0; doc < docs; ++doc) {
        scores[doc] = std::round(draws.normal() * 4.0) / 2.0;  // with ties
        grades[doc] = static_cast<std::uint8_t>(draws.index(levels));
      }
      std::vector<double> weights(docs, 7.0);
      lambdarank_weights(scores, grades, scratch, weights);
      const std::vector<double> slow = slow_weights(scores, grades);
      // Differences of two sums of forty terms near one.
      for (std::size_t doc = 0; doc < docs; ++doc) {
        EXPECT_TRUE(std::fabs(weights[doc] - slow[doc]) <= 1e-12) << docs << " documents, doc " << doc;
      }
    }
  }
}

TEST(LambdaRankWeightsTest, QueriesWithOneGradeChangeNothing) {
  Scratch scratch;
  for (const std::uint8_t grade : {0, 3}) {
    std::vector<double> weights(3, 7.0);
    lambdarank_weights(std::vector<double>{1, 2, 3}, std::vector<std::uint8_t>(3, grade), scratch, weights);
    EXPECT_EQ(weights, std::vector<double>(3, 0.0));
  }
}

RankerSettings linear_settings() {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kLambdaRankLabels, ProtocolName::kPaper);
  settings.name = "sky";
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.5;
  return settings;
}

TEST(LambdaRankLabelsTest, LearnsFromGradesNotClicks) {
  const LabelledWorld world(3, 30, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(linear_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  TestContext context;
  const double before = world.ndcg(*ranker, 5);
  for (std::uint32_t round = 1; round <= 300; ++round) {
    const QueryDocs query = labels.docs_of(round % labels.queries());
    const RankedList list = ranker->rank(context.round, query, round);
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + 10);
    // Clicks that prefer the last document: a ranker that learned from them would get worse.
    std::vector<std::uint8_t> clicks(10, 0);
    clicks.back() = 1;
    const LearnReport report = ranker->learn(context.round, {round, query, shown, clicks});
    EXPECT_TRUE(report.pairs.empty());
    EXPECT_EQ(report.steps.size(), 1U);
  }
  EXPECT_LT(before, 0.75);
  EXPECT_GT(world.ndcg(*ranker, 5), 0.95);
}

TEST(LambdaRankLabelsTest, RefusesAQueryWithoutGrades) {
  const LabelledWorld world(3, 2, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(linear_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  TestContext context;
  QueryDocs query = labels.docs_of(1);
  query.query = 2;
  const std::vector<std::int32_t> shown = {0};
  const std::vector<std::uint8_t> clicks = {1};
  EXPECT_THROW(ranker->learn(context.round, {1, query, shown, clicks}), InvalidArgument);
}

TEST(LambdaRankLabelsTest, OnlyKindsThatLearnFromLabelsRequireThem) {
  EXPECT_TRUE(row_of(RankerKind::kLambdaRankLabels).needs_labels);
  for (const auto& [kind, name] : EnumNames<RankerKind>::values) {
    RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kPaper);
    settings.name = std::string(name);
    check_ranker(settings, 10);
    if (row_of(kind).needs_labels) {
      EXPECT_THROW(make_ranker(settings, 3, TrialKeys{}, 10), InvalidArgument) << name;
    } else {
      EXPECT_GT(make_ranker(settings, 3, TrialKeys{}, 10)->parameters(), 0) << name;
    }
  }
}

}  // namespace
}  // namespace olrank
