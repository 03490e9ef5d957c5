#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/ops/certain_orders.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(CertainOrdersKernelTest);

/// A positive definite M, as wide as scores are apart, with some documents twice.
std::vector<double> gram_of(std::int64_t docs, std::uint64_t seed) {
  const std::int64_t rank = 5;
  const std::vector<float> drawn = random_numbers(docs * rank, seed, 0.1);
  std::vector<double> rows(drawn.begin(), drawn.end());
  if (docs > 4) std::copy_n(rows.begin(), rank, rows.begin() + 3 * rank);
  std::vector<double> m(docs * docs, std::nan(""));
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = 0; j <= i; ++j)
      m[i * docs + j] = std::inner_product(&rows[i * rank], &rows[i * rank] + rank, &rows[j * rank], 0.0);
  }
  return m;
}

/// The words of bits, a row a document, of which every one may be certain.
std::vector<std::uint64_t> words_of(const OrderBits& bits) {
  std::vector<std::uint64_t> words;
  for (std::int64_t a = 0; a < bits.docs(); ++a)
    words.insert(words.end(), bits.row(a).begin(), bits.row(a).end());
  return words;
}

/// Documents in order of score, on the host and on the device.
struct Placed {
  Given<float> scores, magnitudes;
  Given<std::int32_t> order;
  Given<double> m;

  Placed(std::vector<float> of_docs, float magnitude, std::vector<double> gram)
      : scores(std::move(of_docs)),
        magnitudes(std::vector<float>(scores.size(), magnitude)),
        order(slow_order(scores)),
        m(std::move(gram)) {}

  std::int64_t docs() const { return std::ssize(order); }
  std::vector<std::uint64_t> by_width(const CertaintyRule& rule, double* width_sq,
                                      device::WidthHealthSums* health) const {
    DeviceArray<std::uint64_t> bits(docs() * OrderBits::words(docs()));
    device::certain_by_width(nullptr, {docs(), scores, magnitudes, order, m},
                             on_device(std::vector<CertaintyRule>{rule}), bits, width_sq, health);
    return bits.to_host();
  }
  std::vector<std::uint64_t> by_vote(std::int64_t members) const {
    DeviceArray<std::uint64_t> bits(docs() * OrderBits::words(docs()));
    device::certain_by_vote(nullptr, members, docs(), docs(), scores, magnitudes, order, bits);
    return bits.to_host();
  }
  /// Widths are as on the CPU, and so are the counts of those that rounding has spoiled, which it returns.
  WidthHealth expect_equal_widths(const CertaintyRule& rule, std::vector<double>& expected) const {
    ExecutionContext context;
    expected.resize(m.size());
    const WidthHealth health = pair_width_sq(context, docs(), m.data(), expected.data());
    DeviceArray<double> width_sq(docs() * docs());
    DeviceArray<device::WidthHealthSums> sums = on_device(std::vector<device::WidthHealthSums>(1));
    by_width(rule, width_sq, sums);
    EXPECT_EQ(sums.to_host()[0].negative, static_cast<unsigned long long>(health.negative));
    EXPECT_EQ(sums.to_host()[0].lost, static_cast<unsigned long long>(health.lost));
    if (health.lost == 0) {
      EXPECT_EQ(width_sq.to_host(), expected) << docs();
    }
    return health;
  }
};

TEST_P(CertainOrdersKernelTest, WidthsAndBitsMatchCpu) {
  std::int64_t certain = 0;
  for (const std::int64_t docs : {0, 1, 2, 31, 32, 33, 64, 65, 130}) {
    std::vector<float> scores = random_numbers(docs, 11);
    if (docs > 10) scores[7] = scores[2];
    const Placed query(scores, 2.0F, gram_of(docs, 12));
    const CertaintyRule rule{0.9, kScoreRounding * 2.0};
    std::vector<double> width_sq;
    query.expect_equal_widths(rule, width_sq);
    OrderBits orders;
    certain_by_width(rule, query.scores, query.order, width_sq, orders);
    EXPECT_EQ(query.by_width(rule, nullptr, nullptr), words_of(orders)) << docs;
    for (std::int64_t a = 0; a < docs; ++a) orders.for_each_below(a, [&](std::int64_t) { ++certain; });
  }
  EXPECT_GT(certain, 1000);
}

// Scores a millionth apart, one document of a large magnitude: without widths, an order is certain from 41
// places on.
TEST_P(CertainOrdersKernelTest, RoundingFollowsTheLargestMagnitude) {
  const std::int64_t docs = 130;
  std::vector<float> scores;
  for (std::int32_t doc = 0; doc < docs; ++doc) scores.push_back(static_cast<float>(129 - doc) * 1e-6F);
  Placed query(scores, 0.001F, std::vector<double>(docs * docs, 0.0));
  query.magnitudes[5] = 40.5F;
  OrderBits expected;
  expected.reset(docs);
  for (std::int64_t a = 0; a < docs; ++a) {
    for (std::int64_t b = a + 41; b < docs; ++b) expected.set(a, b);
  }
  EXPECT_EQ(query.by_width({0.1, 0.0}, nullptr, nullptr), words_of(expected));
  EXPECT_EQ(query.by_vote(1), words_of(expected));
}

TEST_P(CertainOrdersKernelTest, CountsLostWidths) {
  const std::int64_t docs = 40;
  std::vector<double> m = gram_of(docs, 5);
  m[9 * docs + 9] = -1.0;
  m[20 * docs + 3] = 1.0;
  m[30 * docs + 3] = std::nan("");
  std::vector<double> width_sq;
  EXPECT_GT(Placed(random_numbers(docs, 1), 1.0F, m).expect_equal_widths({0.1, 0.0}, width_sq).lost, 10);
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
      DeviceArray<float> mean(docs);
      device::mean_scores(nullptr, members, docs, on_device(scores), mean);
      std::vector<float> expected_mean(docs);
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        double sum = 0.0;
        for (std::int64_t member = 0; member < members; ++member)
          sum += double{scores[member * docs + doc]};
        expected_mean[doc] = static_cast<float>(sum / static_cast<double>(members));
      }
      EXPECT_EQ(mean.to_host(), expected_mean);
      Placed query(scores, 1.0F, {});
      query.order = slow_order(expected_mean);
      OrderBits orders;
      certain_by_vote(members, kScoreRounding, scores, query.order, orders, context.scratch());
      EXPECT_EQ(query.by_vote(members), words_of(orders));
    }
  }
}

TEST_P(CertainOrdersKernelTest, CarriesFiguresForAnyNumberOfDocuments) {
  Given<double> outcome(300);
  std::iota(outcome.begin(), outcome.end(), 1.0);
  const auto status_there = on_device(std::vector<device::CovarianceStatus>{{2.5, 1}});
  const auto rule_there = on_device(std::vector<CertaintyRule>{{0.1, 0.0}});
  for (const std::int64_t docs : {0, 1, 130}) {
    for (const bool by_vote : {false, true}) {
      const auto scores = on_device(std::vector<float>(docs, 1.0F));
      const auto order = on_device(std::vector<std::int32_t>(docs, 0));
      const auto m = on_device(std::vector<double>(docs * docs, 0.0));
      DeviceArray<std::uint64_t> bits(docs * OrderBits::words(docs));
      auto status = on_device(std::vector<device::CovarianceStatus>(1));
      auto copied = on_device(std::vector<double>(outcome.size(), 0.0));
      const device::CarriedFigures carried{status_there, status, outcome, copied, std::ssize(outcome)};
      if (by_vote) {
        device::certain_by_vote(nullptr, 1, docs, docs, scores, scores, order, bits, carried);
      } else {
        device::certain_by_width(nullptr, {docs, scores, scores, order, m}, rule_there, bits, nullptr,
                                 nullptr, carried);
      }
      const device::CovarianceStatus found = status.to_host()[0];
      EXPECT_EQ(found.log_det, 2.5) << docs;
      EXPECT_EQ(found.failed, 1) << docs;
      EXPECT_EQ(copied.to_host(), outcome) << docs;
    }
  }
}

OLRANK_KERNEL_TEST_SUITE(TheoryAlphaKernelTest);

TEST_P(TheoryAlphaKernelTest, SetsTheAlphaOfTheLogDeterminant) {
  const TheoryAlpha theory{0.5, 2.0, 0.05, 3.0};
  for (const double log_det : {0.0, 1.5, 4000.0}) {
    auto rule = on_device(std::vector<CertaintyRule>{{9.0, 0.125}});
    device::set_theory_alpha(nullptr, theory, on_device(std::vector<double>{log_det}), rule);
    const CertaintyRule found = rule.to_host()[0];
    const long double exact =
        0.5L * (0.5L * std::sqrt(static_cast<long double>(log_det) - 2.0L * std::log(0.05L)) +
                std::sqrt(3.0L) * 2.0L);
    // A device's logarithm may differ in its last bits.
    EXPECT_NEAR(found.alpha, static_cast<double>(exact), 1e-14 * static_cast<double>(exact));
    EXPECT_EQ(found.least_difference, 0.125);
  }
}

}  // namespace
}  // namespace olrank
