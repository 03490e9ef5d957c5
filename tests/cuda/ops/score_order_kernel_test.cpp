#include "cuda/ops/score_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/cuda/ops/kernel_test.h"
#include "tests/cuda/ops/slow_order.h"

namespace olrank {
namespace {

class ScoreOrderKernelTest : public KernelTest {};

TEST_P(ScoreOrderKernelTest, OrdersRaggedQueriesByScoreThenIndexAndWhatIsNoNumberLast) {
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t docs : {0, 1, 31, 32, 33, 130, 2}) offsets.push_back(offsets.back() + docs);
  std::vector<float> scores = random_numbers(offsets.back(), 3);
  for (std::size_t i = 0; i < scores.size(); i += 3) scores[i] = std::round(scores[i]);
  scores[1] = -0.0F;
  scores[2] = 0.0F;
  scores[5] = std::numeric_limits<float>::infinity();
  scores[70] = std::nanf("");
  scores[90] = std::nanf("");
  const auto queries = std::ssize(offsets) - 1;
  DeviceArray<std::int32_t> order(offsets.back());
  DeviceArray<std::int32_t> first_bad(queries);
  const auto offsets_there = on_device(offsets);
  const auto scores_there = on_device(scores);
  device::order_by_score(nullptr, queries, offsets_there.data(), scores_there.data(), order.data(),
                         first_bad.data());
  const auto found = order.to_host();
  const auto bad = first_bad.to_host();
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t first = offsets[query];
    const std::int64_t docs = offsets[query + 1] - first;
    EXPECT_EQ(bad[query], query == 4 ? 70 - first : -1);
    std::vector<float> own = part_of(scores, first, docs);
    // Nothing else here is as small.
    for (float& score : own) score = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
    EXPECT_EQ(part_of(found, first, docs), slow_order(own)) << query;
  }
}

OLRANK_KERNEL_TESTS(ScoreOrderKernelTest);

}  // namespace
}  // namespace olrank
