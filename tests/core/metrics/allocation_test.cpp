#include <gtest/gtest.h>

#include <vector>

#include "core/metrics/evaluator.h"
#include "core/metrics/list_metrics.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/counted_allocations.h"

namespace olrank {
namespace {

template <class Action>
std::int64_t allocations_of(Action action) {
  const std::int64_t before = allocation_count();
  action();
  return allocation_count() - before;
}

TEST(Allocations, AreCounted) {
  EXPECT_GT(allocations_of([] { std::vector<int>(100).swap(*std::make_unique<std::vector<int>>()); }), 0);
}

TEST(Allocations, NoneAfterTheFirstEvaluation) {
  RngStream coins = test_coins(8000);
  const Dataset data = random_dataset(coins, 500, 5);
  const std::vector<double> wide = random_scores(coins, data.docs(), true);
  const std::vector<float> narrow(wide.begin(), wide.end());
  for (const int threads : {1, 3}) {
    for (const MetricSet metrics : {MetricSet::kAll, MetricSet::kTop}) {
      for (const Ties ties : {Ties::kDocIndex, Ties::kNameDescending}) {
        ExecutionContext context(threads);
        MetricOptions options;
        options.metrics = metrics;
        options.ties = ties;
        Evaluator evaluator(options);
        const auto of_floats = [&] { evaluator.evaluate(data, std::span<const float>(narrow), context); };
        EXPECT_GT(allocations_of(of_floats), 0);
        for (int repeat = 0; repeat < 3; ++repeat) {
          EXPECT_EQ(allocations_of(of_floats), 0);
          EXPECT_EQ(allocations_of([&] { evaluator.evaluate(data, wide, context); }), 0);
        }
      }
    }
  }
}

TEST(Allocations, NoneInOnlineRoundsUnlessQueriesGetLonger) {
  OnlineMetrics online({});
  const std::vector<std::uint8_t> grades = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2};
  const std::vector<std::int32_t> list = {12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  online.observe(grades, list);
  EXPECT_EQ(allocations_of([&] {
              for (int round = 0; round < 100; ++round) online.observe(grades, list);
            }),
            0);
}

}  // namespace
}  // namespace olrank
