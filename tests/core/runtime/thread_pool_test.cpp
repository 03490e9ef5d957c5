#include "core/runtime/execution_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/error.h"

namespace olrank {
namespace {

TEST(ThreadPoolTest, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const std::int64_t tasks : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      pool.run(tasks, [&](std::int64_t task, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        ++runs[task];
      });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, ThrowsTheLowestFailureAfterAllHaveRun) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> runs = 0;
    try {
      pool.run(100, [&](std::int64_t task, int) {
        ++runs;
        if (task % 10 == 7) throw std::runtime_error(std::to_string(task));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_EQ(runs, 100);
    pool.run(1, [&](std::int64_t, int) { runs = 0; });  // still usable
    EXPECT_EQ(runs, 0);
  }
}

TEST(ThreadPoolTest, RefusesZeroThreads) {
  EXPECT_THROW(ThreadPool(0), InvalidArgument);
}

TEST(ExecutionContextTest, BlocksDoNotDependOnThreads) {
  std::vector<std::vector<double>> sums;
  for (const int threads : {1, 2, 4}) {
    ExecutionContext context(threads);
    std::vector<double> partial((1000 + 63) / 64);
    context.for_blocks(1000, 64, [&](std::int64_t begin, std::int64_t end, int worker) {
      const Scratch::Frame frame(context.scratch(worker));
      const auto values = context.scratch(worker).take<double>(end - begin);
      for (std::int64_t i = begin; i < end; ++i) values[i - begin] = 1.0 / (1.0 + i);
      partial[begin / 64] = std::accumulate(values.begin(), values.end(), 0.0);
    });
    sums.push_back(partial);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(sums[0].size(), 16U);
}

TEST(ExecutionContextTest, ReportsCoresAndMemory) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_GT(available_memory(), 1 << 20);
}

}  // namespace
}  // namespace olrank
