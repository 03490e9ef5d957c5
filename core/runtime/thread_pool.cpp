#include "core/runtime/thread_pool.h"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"

namespace olrank {

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable start;
  std::condition_variable idle;
  std::uint64_t generation = 0;  // of the current run(); workers wait for it to change
  int busy = 0;                  // started workers that have not finished this generation
  bool stopping = false;

  const FunctionRef<void(std::int64_t, int)>* task = nullptr;
  std::int64_t tasks = 0;
  std::atomic<std::int64_t> next{0};
  std::int64_t failed_task = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure;

  std::vector<std::thread> workers;
  pid_t process = getpid();  // whose threads these are

  void end_workers() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    start.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(std::make_unique<State>()) {
  if (threads < 1) {
    throw InvalidArgument(fmt::format("The number of threads must be at least 1, not {}.", threads));
  }
  const auto start = [&](int worker) {
    state_->workers.emplace_back([this, worker] {
      std::uint64_t seen = 0;
      for (;;) {
        {
          std::unique_lock lock(state_->mutex);
          state_->start.wait(lock, [&] { return state_->stopping || state_->generation != seen; });
          if (state_->stopping) return;
          seen = state_->generation;
        }
        work(worker);
        const std::lock_guard lock(state_->mutex);
        if (--state_->busy == 0) state_->idle.notify_one();
      }
    });
  };
  try {
    state_->workers.reserve(threads - 1);
    for (int worker = 1; worker < threads; ++worker) start(worker);
  } catch (const std::system_error& error) {
    const std::size_t started = state_->workers.size() + 1;
    state_->end_workers();
    throw Error(fmt::format("{} threads cannot be started ({}), {} can: ask for fewer.", threads,
                            error.code().message(), started));
  }
}

ThreadPool::~ThreadPool() {
  if (state_->process == getpid()) {
    state_->end_workers();
  } else {
    // A forked child has none of these threads: waiting for them, also in the destructors of what they wait
    // at, would never end.
    static_cast<void>(state_.release());
  }
}

void ThreadPool::work(int worker) {
  for (;;) {
    const std::int64_t number = state_->next.fetch_add(1);
    if (number >= state_->tasks) return;
    try {
      (*state_->task)(number, worker);
    } catch (...) {
      const std::lock_guard lock(state_->mutex);
      if (number < state_->failed_task) {
        state_->failed_task = number;
        state_->failure = std::current_exception();
      }
    }
  }
}

void ThreadPool::run(std::int64_t tasks, FunctionRef<void(std::int64_t, int)> task) {
  if (tasks <= 0) return;
  if (threads_ == 1 || tasks == 1) {
    std::exception_ptr failure;
    for (std::int64_t number = 0; number < tasks; ++number) {
      try {
        task(number, 0);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
  }
  if (state_->process != getpid()) {
    throw Error("Threads do not come along into a forked process: make the object that has them there.");
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->task = &task;
    state_->tasks = tasks;
    state_->next = 0;
    state_->failed_task = std::numeric_limits<std::int64_t>::max();
    state_->failure = nullptr;
    state_->busy = threads_ - 1;
    ++state_->generation;
  }
  state_->start.notify_all();
  work(0);
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [&] { return state_->busy == 0; });
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace olrank
