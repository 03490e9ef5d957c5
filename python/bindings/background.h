#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "gil.h"

namespace olrank::python {

/// Work on a thread of its own, so that the calling thread can look for signals while it waits. All
/// functions are called with the lock of Python held.
template <class Result>
class Background {
 public:
  explicit Background(std::function<Result()> work) {
    thread_ = std::thread([shared = shared_, work = std::move(work)] {
      try {
        shared->result = work();
      } catch (...) {
        shared->failure = std::current_exception();
      }
      const std::lock_guard lock(shared->mutex);
      shared->ended = true;
      shared->condition.notify_all();
    });
  }
  ~Background() { join(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Waits for a tenth of a second or the end; whether it has ended.
  bool wait() {
    const Released released;
    std::unique_lock lock(shared_->mutex);
    shared_->condition.wait_for(lock, std::chrono::milliseconds(100), [this] { return shared_->ended; });
    return shared_->ended;
  }
  Result result() {
    join();
    if (shared_->failure) std::rethrow_exception(shared_->failure);
    return std::move(*shared_->result);
  }
  /// Returns while the work goes on to its next stop. The process does not end before that.
  void leave() {
    wait_at_end([thread = std::make_shared<std::thread>(std::move(thread_))] { thread->join(); });
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable condition;
    bool ended = false;
    std::optional<Result> result;
    std::exception_ptr failure;
  };

  void join() {
    const Released released;
    if (thread_.joinable()) thread_.join();
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

}  // namespace olrank::python
