#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace olrank {

/// Threads that do jobs in the order of their arrival. All but the first start on demand.
class WorkerThreads {
 public:
  explicit WorkerThreads(std::size_t limit);
  /// Returns after all jobs.
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Jobs must not throw.
  void add(std::function<void()> job);

 private:
  void work();

  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace olrank
