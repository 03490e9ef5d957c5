#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/ops/certain_orders.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class CertainOrdersKernelTest : public KernelTest {};

/// A positive definite M, as wide as scores are apart, with some documents twice.
std::vector<double> gram_of(std::int64_t docs, std::uint64_t seed) {
  const std::int64_t rank = 5;
  std::vector<float> rows = random_numbers(docs * rank, seed, 0.1);
  if (docs > 4) std::copy_n(rows.begin(), rank, rows.begin() + 3 * rank);
  std::vector<double> m(docs * docs, std::nan(""));
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < rank; ++k) {
        sum += double{rows[i * rank + k]} * double{rows[j * rank + k]};
      }
      m[i * docs + j] = sum;
    }
  }
  return m;
}

OrderBits bits_of(const std::vector<std::uint64_t>& words, std::int64_t docs) {
  OrderBits bits;
  bits.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    const auto row = part_of(words, a * OrderBits::words(docs), OrderBits::words(docs));
    std::copy(row.begin(), row.end(), bits.row(a).begin());
  }
  return bits;
}

void expect_same_bits(const OrderBits& found, const OrderBits& expected) {
  for (std::int64_t a = 0; a < expected.docs(); ++a) {
    const auto row = found.row(a);
    const auto expected_row = expected.row(a);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), expected_row.begin())) << "row " << a;
  }
}

TEST_P(CertainOrdersKernelTest, WidthsAndBitsMatchCpu) {
  ExecutionContext context;
  std::int64_t certain = 0;
  for (const std::int64_t docs : {0, 1, 2, 31, 32, 33, 64, 65, 130}) {
    std::vector<float> scores = random_numbers(docs, 11);
    if (docs > 10) scores[7] = scores[2];
    std::vector<float> magnitudes(scores.size(), 2.0F);
    std::vector<double> m = gram_of(docs, 12);
    const std::vector<std::int32_t> order = slow_order(scores);
    const CertaintyRule rule{0.9, kScoreRounding * 2.0};
    const auto scores_there = on_device(scores);
    const auto magnitudes_there = on_device(magnitudes);
    const auto order_there = on_device(order);
    const auto m_there = on_device(m);
    const auto rule_there = on_device(std::vector<CertaintyRule>{rule});
    DeviceArray<std::uint64_t> bits(docs * OrderBits::words(docs));
    DeviceArray<double> width_sq(docs * docs);
    DeviceArray<device::WidthHealthSums> health = on_device(std::vector<device::WidthHealthSums>(1));
    const device::WidthedDocs query{docs, scores_there.data(), magnitudes_there.data(), order_there.data(),
                                    m_there.data()};
    device::certain_by_width(nullptr, query, rule_there.data(), bits.data(), width_sq.data(),
                             health.data());

    std::vector<double> expected(m.size());
    const WidthHealth expected_health = pair_width_sq(context, docs, m.data(), expected.data());
    OrderBits orders;
    certain_by_width(rule, scores, order, expected, orders);
    EXPECT_EQ(width_sq.to_host(), expected) << docs;
    expect_same_bits(bits_of(bits.to_host(), docs), orders);
    EXPECT_EQ(health.to_host()[0].negative, static_cast<unsigned long long>(expected_health.negative));
    EXPECT_EQ(health.to_host()[0].lost, static_cast<unsigned long long>(expected_health.lost));
    for (std::int64_t a = 0; a < docs; ++a) orders.for_each_below(a, [&](std::int64_t) { ++certain; });

    DeviceArray<std::uint64_t> bits_alone(docs * OrderBits::words(docs));
    device::certain_by_width(nullptr, query, rule_there.data(), bits_alone.data(), nullptr, nullptr);
    EXPECT_EQ(bits_alone.to_host(), bits.to_host());
  }
  EXPECT_GT(certain, 1000);
}

// Scores a millionth apart, one document of a large magnitude: without widths, an order is certain from 41
// places on.
TEST_P(CertainOrdersKernelTest, RoundingFollowsTheLargestMagnitude) {
  const std::int64_t docs = 130;
  std::vector<float> scores;
  std::vector<std::int32_t> order;
  for (std::int32_t doc = 0; doc < docs; ++doc) {
    scores.push_back(static_cast<float>(129 - doc) * 1e-6F);
    order.push_back(doc);
  }
  std::vector<float> magnitudes(scores.size(), 0.001F);
  magnitudes[5] = 40.5F;
  const auto scores_there = on_device(scores);
  const auto magnitudes_there = on_device(magnitudes);
  const auto order_there = on_device(order);
  const auto m_there = on_device(std::vector<double>(docs * docs, 0.0));
  const auto rule_there = on_device(std::vector<CertaintyRule>{{0.1, 0.0}});
  DeviceArray<std::uint64_t> by_width(docs * OrderBits::words(docs));
  DeviceArray<std::uint64_t> by_vote(docs * OrderBits::words(docs));
  DeviceArray<device::WidthHealthSums> health = on_device(std::vector<device::WidthHealthSums>(1));
  device::certain_by_width(
      nullptr, {docs, scores_there.data(), magnitudes_there.data(), order_there.data(), m_there.data()},
      rule_there.data(), by_width.data(), nullptr, health.data());
  device::certain_by_vote(nullptr, 1, docs, docs, scores_there.data(), magnitudes_there.data(),
                          order_there.data(), by_vote.data());
  OrderBits expected;
  expected.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    for (std::int64_t b = a + 41; b < docs; ++b) expected.set(a, b);
  }
  expect_same_bits(bits_of(by_width.to_host(), docs), expected);
  expect_same_bits(bits_of(by_vote.to_host(), docs), expected);
}

TEST_P(CertainOrdersKernelTest, CountsLostWidths) {
  ExecutionContext context;
  const std::int64_t docs = 40;
  std::vector<double> m = gram_of(docs, 5);
  m[9 * docs + 9] = -1.0;
  m[20 * docs + 3] = 1.0;
  m[30 * docs + 3] = std::nan("");
  const std::vector<float> scores = random_numbers(docs, 1);
  const std::vector<std::int32_t> order = slow_order(scores);
  const auto scores_there = on_device(scores);
  const auto magnitudes_there = on_device(std::vector<float>(scores.size(), 1.0F));
  const auto order_there = on_device(order);
  const auto m_there = on_device(m);
  const auto rule_there = on_device(std::vector<CertaintyRule>{{0.1, 0.0}});
  DeviceArray<std::uint64_t> bits(docs * OrderBits::words(docs));
  DeviceArray<device::WidthHealthSums> health = on_device(std::vector<device::WidthHealthSums>(1));
  device::certain_by_width(
      nullptr, {docs, scores_there.data(), magnitudes_there.data(), order_there.data(), m_there.data()},
      rule_there.data(), bits.data(), nullptr, health.data());
  std::vector<double> expected(m.size());
  const WidthHealth expected_health = pair_width_sq(context, docs, m.data(), expected.data());
  EXPECT_GT(expected_health.lost, 10);
  EXPECT_EQ(health.to_host()[0].negative, static_cast<unsigned long long>(expected_health.negative));
  EXPECT_EQ(health.to_host()[0].lost, static_cast<unsigned long long>(expected_health.lost));
}

TEST_P(CertainOrdersKernelTest, VotesMatchCpu) {
  ExecutionContext context;
  for (const std::int64_t docs : {0, 1, 33, 70}) {
    for (const std::int64_t members : {1, 4}) {
      std::vector<float> scores;
      const std::vector<float> common = random_numbers(docs, 4);
      for (std::int64_t member = 0; member < members; ++member) {
        std::vector<float> own = random_numbers(docs, 20 + static_cast<std::uint64_t>(member), 0.4);
        for (std::size_t doc = 0; doc < own.size(); ++doc) own[doc] += common[doc];
        scores.insert(scores.end(), own.begin(), own.end());
      }
      if (docs > 3) scores[1] = scores[2] + 1e-7F;
      const std::vector<float> magnitudes(scores.size(), 1.0F);
      const auto scores_there = on_device(scores);
      const auto magnitudes_there = on_device(magnitudes);
      DeviceArray<float> mean(docs);
      device::mean_scores(nullptr, members, docs, scores_there.data(), mean.data());
      std::vector<float> expected_mean(docs);
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        double sum = 0.0;
        for (std::int64_t member = 0; member < members; ++member)
          sum += double{scores[member * docs + doc]};
        expected_mean[doc] = static_cast<float>(sum / static_cast<double>(members));
      }
      EXPECT_EQ(mean.to_host(), expected_mean);
      const std::vector<std::int32_t> order = slow_order(expected_mean);
      const auto order_there = on_device(order);
      DeviceArray<std::uint64_t> bits(docs * OrderBits::words(docs));
      device::certain_by_vote(nullptr, members, docs, docs, scores_there.data(), magnitudes_there.data(),
                              order_there.data(), bits.data());
      OrderBits orders;
      certain_by_vote(members, kScoreRounding, scores, order, orders, context.scratch());
      expect_same_bits(bits_of(bits.to_host(), docs), orders);
    }
  }
}

TEST_P(CertainOrdersKernelTest, CarriesFiguresForAnyNumberOfDocuments) {
  std::vector<double> outcome(300);
  std::iota(outcome.begin(), outcome.end(), 1.0);
  const auto status_there = on_device(std::vector<device::CovarianceStatus>{{2.5, 1}});
  const auto outcome_there = on_device(outcome);
  const auto rule_there = on_device(std::vector<CertaintyRule>{{0.1, 0.0}});
  for (const std::int64_t docs : {0, 1, 130}) {
    for (const bool by_vote : {false, true}) {
      const auto scores = on_device(std::vector<float>(docs, 1.0F));
      const auto order = on_device(std::vector<std::int32_t>(docs, 0));
      const auto m = on_device(std::vector<double>(docs * docs, 0.0));
      DeviceArray<std::uint64_t> bits(docs * OrderBits::words(docs));
      auto status = on_device(std::vector<device::CovarianceStatus>(1));
      auto copied = on_device(std::vector<double>(outcome.size(), 0.0));
      const device::CarriedFigures carried{status_there.data(), status.data(), outcome_there.data(),
                                           copied.data(), std::ssize(outcome)};
      if (by_vote) {
        device::certain_by_vote(nullptr, 1, docs, docs, scores.data(), scores.data(), order.data(),
                                bits.data(), carried);
      } else {
        device::certain_by_width(nullptr, {docs, scores.data(), scores.data(), order.data(), m.data()},
                                 rule_there.data(), bits.data(), nullptr, nullptr, carried);
      }
      const device::CovarianceStatus found = status.to_host()[0];
      EXPECT_EQ(found.log_det, 2.5) << docs;
      EXPECT_EQ(found.failed, 1) << docs;
      EXPECT_EQ(copied.to_host(), outcome) << docs;
    }
  }
}

OLRANK_KERNEL_TESTS(CertainOrdersKernelTest);

class TheoryAlphaKernelTest : public KernelTest {};

TEST_P(TheoryAlphaKernelTest, SetsTheAlphaOfTheLogDeterminant) {
  const TheoryAlpha theory{0.5, 2.0, 0.05, 3.0};
  for (const double log_det : {0.0, 1.5, 4000.0}) {
    const auto log_det_there = on_device(std::vector<double>{log_det});
    auto rule = on_device(std::vector<CertaintyRule>{{9.0, 0.125}});
    device::set_theory_alpha(nullptr, theory, log_det_there.data(), rule.data());
    const CertaintyRule found = rule.to_host()[0];
    const long double exact =
        0.5L * (0.5L * std::sqrt(static_cast<long double>(log_det) - 2.0L * std::log(0.05L)) +
                std::sqrt(3.0L) * 2.0L);
    // A device's logarithm may differ in its last bits.
    EXPECT_NEAR(found.alpha, static_cast<double>(exact), 1e-14 * static_cast<double>(exact));
    EXPECT_EQ(found.least_difference, 0.125);
  }
}

TEST_P(TheoryAlphaKernelTest, SumsTheLogarithmsOfADiagonal) {
  for (const std::int64_t parameters : {0, 1, 31, 32, 33, 256, 1000}) {
    std::vector<double> diagonal;
    long double exact = 0.0L;
    for (const float draw : random_numbers(parameters, 51)) {
      diagonal.push_back(2.5 + std::abs(double{draw}));
      exact += std::log(static_cast<long double>(diagonal.back()) / 2.5L);
    }
    const auto diagonal_there = on_device(diagonal);
    DeviceArray<double> log_det(1);
    device::diagonal_log_det(nullptr, parameters, diagonal_there.data(), 2.5, log_det.data());
    // Sums of up to 1,000 positive numbers below 2, in double.
    EXPECT_NEAR(log_det.to_host()[0], static_cast<double>(exact), 1e-12) << parameters;
  }
}

OLRANK_KERNEL_TESTS(TheoryAlphaKernelTest);

}  // namespace
}  // namespace olrank
