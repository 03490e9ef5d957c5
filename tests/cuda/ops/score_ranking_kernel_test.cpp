#include "cuda/ops/score_ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/metrics/list_metrics.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/cuda/ops/slow_order.h"

namespace olrank {
namespace {

class ScoreRankingKernelTest : public KernelTest {};

TEST_P(ScoreRankingKernelTest, RaggedQueriesAreOrderedByScoreWithTiesByIndex) {
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t docs : {0, 1, 31, 32, 33, 130, 2}) offsets.push_back(offsets.back() + docs);
  std::vector<float> scores = random_numbers(offsets.back(), 3);
  for (std::size_t i = 0; i < scores.size(); i += 3) scores[i] = std::round(scores[i]);
  scores[1] = -0.0F;
  scores[2] = 0.0F;
  scores[5] = std::numeric_limits<float>::infinity();
  scores[70] = std::nanf("");
  scores[90] = std::nanf("");
  const auto queries = static_cast<std::int64_t>(offsets.size()) - 1;
  DeviceArray<std::int32_t> order(offsets.back());
  DeviceArray<std::int32_t> first_bad(queries);
  const auto offsets_there = on_device(offsets);
  const auto scores_there = on_device(scores);
  device::order_by_score(nullptr, queries, offsets_there.data(), scores_there.data(), order.data(),
                         first_bad.data());
  const auto found = order.to_host();
  const auto bad = first_bad.to_host();
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t first = offsets[static_cast<std::size_t>(query)];
    const std::int64_t docs = offsets[static_cast<std::size_t>(query + 1)] - first;
    if (query == 4) {
      EXPECT_EQ(bad[4], 70 - first);
      continue;
    }
    EXPECT_EQ(bad[static_cast<std::size_t>(query)], -1);
    EXPECT_EQ(part_of(found, first, docs), slow_order(part_of(scores, first, docs))) << query;
  }
}

// Tables come from the host, and sums run in the order of ranks: no tolerance.
TEST_P(ScoreRankingKernelTest, DcgHasTheCpusBits) {
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t docs : {0, 1, 3, 31, 33, 200}) offsets.push_back(offsets.back() + docs);
  const auto queries = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<float> scores = random_numbers(offsets.back(), 8);
  for (std::size_t i = 0; i < scores.size(); i += 2) scores[i] = std::round(scores[i]);
  std::vector<std::uint8_t> grades;
  RngStream draws(test_key(9), 1);
  for (std::size_t i = 0; i < scores.size(); ++i)
    grades.push_back(static_cast<std::uint8_t>(draws.index(5)));
  const GainTable gains = gain_table(Gain::kExponential);
  DiscountTable discounts;
  discounts.reach(150);
  const std::vector<std::int32_t> cutoffs = {1, 3, 10, 150};
  const auto offsets_there = on_device(offsets);
  const auto scores_there = on_device(scores);
  const auto grades_there = on_device(grades);
  const auto cutoffs_there = on_device(cutoffs);
  const auto gains_there = on_device(std::vector<double>(gains.begin(), gains.end()));
  const auto discounts_there =
      on_device(std::vector<double>(discounts.values().begin(), discounts.values().end()));
  DeviceArray<double> dcg(queries * 4);
  DeviceArray<std::int32_t> first_bad(queries);
  device::dcg_by_score(nullptr, queries, offsets_there.data(), scores_there.data(), grades_there.data(),
                       {gains_there.data(), discounts_there.data(), cutoffs_there.data(), 4, 150},
                       dcg.data(), first_bad.data());
  const auto found = dcg.to_host();
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t first = offsets[static_cast<std::size_t>(query)];
    const std::int64_t docs = offsets[static_cast<std::size_t>(query + 1)] - first;
    std::vector<std::uint8_t> list;
    for (const std::int32_t doc : slow_order(part_of(scores, first, docs)))
      list.push_back(grades[static_cast<std::size_t>(first + doc)]);
    for (std::size_t c = 0; c < cutoffs.size(); ++c) {
      const auto shown = static_cast<std::size_t>(std::min<std::int64_t>(docs, cutoffs[c]));
      EXPECT_EQ(found[static_cast<std::size_t>(query) * 4 + c],
                dcg_of_list(std::span(list).first(shown), gains, discounts.values()))
          << query << " " << c;
    }
  }
  EXPECT_EQ(first_bad.to_host(), std::vector<std::int32_t>(static_cast<std::size_t>(queries), -1));
  DeviceArray<double> unchecked(queries * 4);
  device::dcg_by_score(nullptr, queries, offsets_there.data(), scores_there.data(), grades_there.data(),
                       {gains_there.data(), discounts_there.data(), cutoffs_there.data(), 4, 150},
                       unchecked.data(), nullptr);
  EXPECT_EQ(unchecked.to_host(), found);
}

OLRANK_KERNEL_TESTS(ScoreRankingKernelTest);

}  // namespace
}  // namespace olrank
