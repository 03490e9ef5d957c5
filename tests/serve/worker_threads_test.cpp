#include "serve/listener.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <set>

namespace olrank {
namespace {

// The first jobs wait for each other, so that none is done before every thread has one.
TEST(WorkerThreadsTest, DoesAllJobsOnAtMostItsThreads) {
  std::mutex mutex;
  std::condition_variable all_run;
  std::set<std::thread::id> seen;
  int running = 0;
  int most = 0;
  int done = 0;
  {
    WorkerThreads threads(3);
    for (int job = 0; job < 60; ++job) {
      threads.add([&] {
        {
          std::unique_lock lock(mutex);
          seen.insert(std::this_thread::get_id());
          most = std::max(most, ++running);
          all_run.notify_all();
          all_run.wait_for(lock, std::chrono::seconds(20), [&] { return most >= 3; });
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::lock_guard lock(mutex);
        --running;
        ++done;
      });
    }
  }
  EXPECT_EQ(done, 60);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(seen.size(), 3U);
}

TEST(WorkerThreadsTest, StartsThreadsForJobsThatWait) {
  std::atomic<bool> last{false};
  WorkerThreads threads(2);
  threads.add([&] {
    while (!last) std::this_thread::yield();
  });
  threads.add([&] { last = true; });
}

}  // namespace
}  // namespace olrank
