#pragma once

#include <cstdint>
#include <memory>

#include "core/runtime/function_ref.h"

namespace olrank {

/// Threads that run numbered tasks. Any thread may run any task, so that a task writes only what belongs to
/// its number, and sums over tasks follow the order of the numbers: results do not depend on the number of
/// threads.
class ThreadPool {
 public:
  /// `threads` ≥ 1 includes the caller, which works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls task(number, worker) for each number in [0, tasks), worker in [0, threads()), and returns when
  /// all are done. If tasks throw, all others still run, and run() throws the exception of the lowest
  /// number. Not reentrant: a task must not call run() of the same pool.
  void run(std::int64_t tasks, FunctionRef<void(std::int64_t task, int worker)> task);

 private:
  struct State;
  void work(int worker);

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace olrank
