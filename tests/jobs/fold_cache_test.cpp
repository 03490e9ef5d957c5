#include "jobs/job_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/core/metrics/small_data.h"

namespace olrank {
namespace {

std::shared_ptr<const FoldData> fold_named(std::int64_t fold) {
  const Dataset empty = make_dataset({});
  return std::make_shared<const FoldData>(
      FoldData{{empty, empty, 0}, std::to_string(fold), {}, std::nullopt});
}

TEST(FoldCacheTest, LoadsFoldOnceWhileInUse) {
  std::vector<std::int64_t> loaded;
  FoldCache cache([&](std::int64_t fold) {
    loaded.push_back(fold);
    return fold_named(fold);
  });
  auto one = cache.get(1);
  EXPECT_EQ(cache.get(1), one);
  const auto two = cache.get(2);
  EXPECT_EQ(two->fingerprint, "2");
  EXPECT_EQ(cache.get(1), one);  // kept by its user
  EXPECT_EQ(loaded, (std::vector<std::int64_t>{1, 2}));
  // The latest one stays without a user; an earlier one does not.
  one.reset();
  EXPECT_EQ(cache.get(1)->fingerprint, "1");
  EXPECT_EQ(loaded.size(), 2U);
  cache.get(3);
  cache.get(1);
  EXPECT_EQ(loaded, (std::vector<std::int64_t>{1, 2, 3, 1}));
}

TEST(FoldCacheTest, ThreadsShareOneLoad) {
  std::atomic<int> loads = 0;
  FoldCache cache([&](std::int64_t fold) {
    ++loads;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return fold_named(fold);
  });
  std::vector<std::shared_ptr<const FoldData>> got(4);
  std::vector<std::thread> threads;
  for (auto& one : got) threads.emplace_back([&] { one = cache.get(5); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loads, 1);
  for (const auto& one : got) EXPECT_EQ(one, got[0]);
}

TEST(FoldCacheTest, RetriesFailedLoad) {
  bool fails = true;
  FoldCache cache([&](std::int64_t fold) {
    if (fails) throw std::runtime_error("no such file");
    return fold_named(fold);
  });
  EXPECT_THROW(cache.get(1), std::runtime_error);
  fails = false;
  EXPECT_EQ(cache.get(1)->fingerprint, "1");
}

}  // namespace
}  // namespace olrank
