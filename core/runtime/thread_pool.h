#pragma once

#include <cstdint>
#include <memory>

#include "core/runtime/function_ref.h"

namespace olrank {

/// Threads that work through numbered tasks. Which thread takes which task is open, so a task writes only
/// what belongs to its number, and sums over tasks are taken in the order of the numbers: results do not
/// depend on the number of threads.
class ThreadPool {
 public:
  /// `threads` ≥ 1 counts the caller, who works too: one thread starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls task(number, worker) for each number in [0, tasks), worker in [0, threads()), and returns when
  /// all are done. If tasks throw, all others still run, and the exception of the lowest number comes out.
  /// Not reentrant: a task must not call run() of the same pool.
  void run(std::int64_t tasks, FunctionRef<void(std::int64_t task, int worker)> task);

 private:
  struct State;
  void work(int worker);

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace olrank
