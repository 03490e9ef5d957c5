#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/metrics/evaluator.h"
#include "core/metrics/list_metrics.h"
#include "tests/core/metrics/small_data.h"

// One query computed by hand. Documents of grades 3 0 2 1 0 are scored so that they stand as 2 0 3 0 1.
namespace olrank {
namespace {

constexpr double kFewRoundings = 1e-15;  // a handful of roundings of figures of about 1

class KnownValues : public testing::Test {
 protected:
  MetricReport judge(MetricOptions options) {
    ExecutionContext context;
    const std::vector<float> scores = {3.0F, 4.0F, 5.0F, 1.0F, 2.0F};
    return Evaluator(options).evaluate(data_, std::span<const float>(scores), context);
  }
  Dataset data_ = make_dataset({{"q", {3, 0, 2, 1, 0}, {}}});
};

TEST_F(KnownValues, ExponentialGain) {
  const MetricReport report = judge({});
  const double log3 = std::log2(3.0);
  const double log6 = std::log2(6.0);
  EXPECT_NEAR(report.ndcg[0], 3.0 / 7.0, kFewRoundings);
  EXPECT_NEAR(report.dcg[1], 3.0 + 7.0 / 2.0, kFewRoundings);
  EXPECT_NEAR(report.ndcg[1], 6.5 / (7.0 + 3.0 / log3 + 0.5), kFewRoundings);
  EXPECT_NEAR(report.ndcg[2], (6.5 + 1.0 / log6) / (7.0 + 3.0 / log3 + 0.5), kFewRoundings);
  EXPECT_EQ(report.ndcg[3], report.ndcg[2]);  // the list ends at 5
}

TEST_F(KnownValues, LinearGain) {
  MetricOptions options;
  options.gain = Gain::kLinear;
  const MetricReport report = judge(options);
  EXPECT_NEAR(report.ndcg[0], 2.0 / 3.0, kFewRoundings);
  EXPECT_NEAR(report.ndcg[1], 3.5 / (3.0 + 2.0 / std::log2(3.0) + 0.5), kFewRoundings);
}

TEST_F(KnownValues, BinaryFigures) {
  const MetricReport report = judge({});
  EXPECT_NEAR(report.map, (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0, kFewRoundings);
  EXPECT_EQ(report.mrr, 1.0);
  EXPECT_EQ(report.precision, 0.3);  // 3 of 10 ranks, though there are 5 documents
}

TEST_F(KnownValues, ExpectedReciprocalRank) {
  // Satisfactions 3/8, 0, 7/8, 0, 1/8 with the data's largest grade, 3.
  const double by_three =
      3.0 / 8.0 + (5.0 / 8.0) * (7.0 / 8.0) / 3.0 + (5.0 / 8.0) * (1.0 / 8.0) * (1.0 / 8.0) / 5.0;
  EXPECT_NEAR(judge({}).err, by_three, kFewRoundings);
  MetricOptions options;
  options.max_grade = 4;
  const double by_four =
      3.0 / 16.0 + (13.0 / 16.0) * (7.0 / 16.0) / 3.0 + (13.0 / 16.0) * (9.0 / 16.0) * (1.0 / 16.0) / 5.0;
  EXPECT_NEAR(judge(options).err, by_four, kFewRoundings);
  options.err_cutoff = 1;
  EXPECT_EQ(judge(options).err, 3.0 / 16.0);
}

TEST_F(KnownValues, PositionsAndPairs) {
  const MetricReport report = judge({});
  EXPECT_NEAR(report.arp, (2.0 * 1 + 3.0 * 3 + 1.0 * 5) / 6.0, kFewRoundings);
  EXPECT_EQ(report.pairs, 9);             // of 10, one joins the two zeros
  EXPECT_EQ(report.misordered_pairs, 4);  // 2<3, 0<3, and each 0 above the 1
  EXPECT_NEAR(report.pair_accuracy, 5.0 / 9.0, kFewRoundings);
}

// TensorFlow Ranking documents ARP with this example: scores 3 1 2 of labels 0 1 1 give 2.5.
TEST(AverageRelevantPosition, MatchesTensorFlowRankingExample) {
  ExecutionContext context;
  const std::vector<float> scores = {3.0F, 1.0F, 2.0F};
  EXPECT_EQ(Evaluator()
                .evaluate(make_dataset({{"q", {0, 1, 1}, {}}}), std::span<const float>(scores), context)
                .arp,
            2.5);
}

TEST(Gains, AreExactToTheHighestGrade) {
  EXPECT_EQ(dcg_gain(0, Gain::kExponential), 0.0);
  EXPECT_EQ(dcg_gain(4, Gain::kExponential), 15.0);
  EXPECT_EQ(dcg_gain(kHighestGrade, Gain::kExponential), 2147483647.0);
  EXPECT_EQ(dcg_gain(kHighestGrade, Gain::kLinear), 31.0);
}

TEST(Discounts, OfTheFirstRanks) {
  DiscountTable plain;
  plain.reach(3);
  plain.reach(2);  // never shrinks
  ASSERT_EQ(plain.values().size(), 3U);
  EXPECT_EQ(plain.values()[0], 1.0);
  EXPECT_EQ(plain.values()[1], 1.0 / std::log2(3.0));
  EXPECT_EQ(plain.values()[2], 0.5);
  DiscountTable letor(Discount::kLetor);
  letor.reach(4);
  EXPECT_EQ(letor.values()[0], 1.0);
  EXPECT_EQ(letor.values()[1], 1.0);
  EXPECT_EQ(letor.values()[2], 1.0 / std::log2(3.0));
  EXPECT_EQ(letor.values()[3], 0.5);
}

}  // namespace
}  // namespace olrank
