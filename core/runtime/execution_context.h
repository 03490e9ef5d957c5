#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime/function_ref.h"
#include "core/runtime/scratch.h"
#include "core/runtime/thread_pool.h"

namespace olrank {

/// The threads and scratch memory of a computation, passed first to every function that computes. Each
/// trial has its own; nothing is global.
class ExecutionContext {
 public:
  explicit ExecutionContext(int threads = 1);

  ThreadPool& pool() { return pool_; }
  int threads() const { return pool_.threads(); }
  /// The scratch memory of one worker; worker 0 is the calling thread.
  Scratch& scratch(int worker = 0) { return scratch_[worker]; }

  /// Splits [0, count) into blocks of `block` items, the last one shorter, and calls
  /// body(begin, end, worker) for each. Block boundaries depend on `block` alone, never on the threads.
  void for_blocks(std::int64_t count, std::int64_t block,
                  FunctionRef<void(std::int64_t begin, std::int64_t end, int worker)> body);

 private:
  ThreadPool pool_;
  std::vector<Scratch> scratch_;
};

/// The cores that this process may use, by its affinity and its control group's quota; at least 1.
int available_threads();

/// Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower.
std::int64_t available_memory();

}  // namespace olrank
