// Lists that follow a posterior of the scores: draws against their closed form, bounds by hand.
#include "core/explore/posterior_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

const PhiloxKey kDrawKey = make_key({.seed = 5, .purpose = Purpose::kScores, .fold = 1});
const PhiloxKey kTieKey = make_key({.seed = 5, .purpose = Purpose::kList, .fold = 1});

/// Squared widths of documents with these gradients, under a covariance of identity: ‖g_i − g_j‖².
std::vector<double> widths_of(const std::vector<std::vector<double>>& gradients) {
  std::vector<double> width_sq;
  for (const auto& a : gradients) {
    for (const auto& b : gradients) {
      double sum = 0.0;
      for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
      width_sq.push_back(sum);
    }
  }
  return width_sq;
}

std::vector<std::vector<double>> random_gradients(std::size_t docs, std::size_t features) {
  RngStream coins(make_key({.seed = 6, .purpose = Purpose::kProbe}), static_cast<std::uint32_t>(features));
  std::vector<std::vector<double>> gradients(docs, std::vector<double>(features));
  for (auto& row : gradients) {
    for (double& value : row) value = 3.0 + coins.normal();  // most of a gradient is common
  }
  return gradients;
}

double normal_below(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

/// Fewer features than documents, as many as documents less one, and more.
class PosteriorDrawTest : public testing::TestWithParam<std::size_t> {};

TEST_P(PosteriorDrawTest, HasTheVariancesAndTheOrdersOfTheClosedForm) {
  constexpr std::size_t kDocs = 6;
  constexpr double kAlpha = 0.4;
  constexpr int kDraws = 40000;
  const std::vector<double> width_sq = widths_of(random_gradients(kDocs, GetParam()));
  const std::vector<float> scores = {0.5F, 0.1F, -0.3F, 0.2F, 0.0F, 0.4F};
  PosteriorOrder order(ListRule::kSample, kDrawKey, kTieKey);
  std::vector<double> sum_sq(kDocs * kDocs, 0.0);
  std::vector<std::int64_t> first_above(kDocs * kDocs, 0);
  for (int draw = 1; draw <= kDraws; ++draw) {
    const auto list = order.find({scores, width_sq, kAlpha}, static_cast<std::uint32_t>(draw));
    std::vector<std::size_t> rank(kDocs);
    for (std::size_t place = 0; place < kDocs; ++place) rank[list[place]] = place;
    for (std::size_t i = 0; i < kDocs; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double mean = double{scores[i]} - double{scores[j]};
        const double error = order.scores()[i] - order.scores()[j] - mean;
        sum_sq[i * kDocs + j] += error * error;
        first_above[i * kDocs + j] += rank[i] < rank[j] ? 1 : 0;
      }
    }
  }
  // Two χ² bounds and one statistic of two cells for each of 15 pairs: false alarms below 1e-8 in total.
  for (std::size_t i = 0; i < kDocs; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double variance = kAlpha * kAlpha * width_sq[i * kDocs + j];
      const double chi = sum_sq[i * kDocs + j] / variance;
      EXPECT_LT(chi, chi_square_bound(kDraws, kTail)) << i << " " << j;
      EXPECT_GT(chi, chi_square_lower_bound(kDraws, kTail)) << i << " " << j;
      const double above = normal_below((double{scores[i]} - double{scores[j]}) / std::sqrt(variance));
      const std::int64_t count = first_above[i * kDocs + j];
      const std::vector<std::int64_t> counts = {count, kDraws - count};
      EXPECT_TRUE(counts_follow(counts, std::vector{above, 1.0 - above}, kTail)) << i << " " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Features, PosteriorDrawTest, testing::Values(1, 2, 5, 40));

// Gradients 0, 1 and 3 lie 4/3, 1/3 and 5/3 from their mean.
TEST(PosteriorOrderTest, BoundsAreThoseComputedByHand) {
  const std::vector<double> width_sq = widths_of({{0.0}, {1.0}, {3.0}});
  const std::vector<float> scores = {1.0F, 1.25F, 0.5F};
  PosteriorOrder order(ListRule::kUcb, kDrawKey, kTieKey);
  const auto list_at = [&](double alpha) {
    const auto list = order.find({scores, width_sq, alpha}, 1);
    return std::vector<std::int32_t>(list.begin(), list.end());
  };
  EXPECT_EQ(list_at(0.0), (std::vector{1, 0, 2}));
  EXPECT_EQ(list_at(0.1), (std::vector{1, 0, 2}));
  EXPECT_EQ(list_at(1.0), (std::vector{0, 2, 1}));
  const double expected[] = {1.0 + 4.0 / 3.0, 1.25 + 1.0 / 3.0, 0.5 + 5.0 / 3.0};
  for (int doc = 0; doc < 3; ++doc) EXPECT_NEAR(order.scores()[doc], expected[doc], 1e-14);
  EXPECT_EQ(list_at(10.0), (std::vector{2, 0, 1}));
}

TEST(PosteriorOrderTest, EqualScoresComeInAnyOrder) {
  const std::vector<double> width_sq(9, 0.0);
  const std::vector<float> scores(3, 0.25F);
  for (const ListRule rule : {ListRule::kSample, ListRule::kUcb}) {
    PosteriorOrder order(rule, kDrawKey, kTieKey);
    std::vector<std::int64_t> counts(9, 0);  // of the first two documents
    for (std::uint32_t round = 1; round <= 6000; ++round) {
      const auto list = order.find({scores, width_sq, 1.0}, round);
      ++counts[list[0] * 3 + list[1]];
    }
    // False alarms: 1e-6 for each rule.
    const double sixth = 1.0 / 6.0;
    EXPECT_TRUE(
        counts_follow(counts, std::vector{0.0, sixth, sixth, sixth, 0.0, sixth, sixth, sixth, 0.0}));
  }
}

TEST(PosteriorOrderTest, TakesNoDocumentAndOne) {
  for (const ListRule rule : {ListRule::kSample, ListRule::kUcb}) {
    PosteriorOrder order(rule, kDrawKey, kTieKey);
    EXPECT_TRUE(order.find({}, 1).empty());
    const float score = 2.0F;
    const double width_sq = 0.0;
    const auto list = order.find({{&score, 1}, {&width_sq, 1}, 1.0}, 1);
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(order.scores()[0], 2.0);
  }
}

TEST(PosteriorOrderTest, RefusesWhatIsNotFinite) {
  const std::vector<float> scores = {1.0F, 2.0F};
  const std::vector<double> width_sq = {0.0, INFINITY, INFINITY, 0.0};
  for (const ListRule rule : {ListRule::kSample, ListRule::kUcb}) {
    PosteriorOrder order(rule, kDrawKey, kTieKey);
    EXPECT_THROW(order.find({scores, width_sq, 1.0}, 1), NumericError);
  }
}

}  // namespace
}  // namespace olrank
