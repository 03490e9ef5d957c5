#include "core/runtime/execution_context.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "core/throw_error.h"

namespace olrank {

ExecutionContext::ExecutionContext(int threads) : pool_(threads), scratch_(threads) {}

void ExecutionContext::for_blocks(std::int64_t count, std::int64_t block,
                                  FunctionRef<void(std::int64_t, std::int64_t, int)> body) {
  assert(block > 0);
  const std::int64_t blocks = (count + block - 1) / block;
  const auto task = [&](std::int64_t number, int worker) {
    const std::int64_t begin = number * block;
    body(begin, std::min(begin + block, count), worker);
  };
  pool_.run(blocks, task);
}

int available_threads() {
  int cores = 1;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = std::max(CPU_COUNT(&allowed), 1);
  // A container's quota: "max 100000" or "150000 100000", microseconds a period.
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0.0;
  if (quota_file >> quota >> period && quota != "max" && period > 0.0) {
    const double share = std::strtod(quota.c_str(), nullptr) / period;
    if (share > 0.0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(share))));
  }
  return cores;
}

std::int64_t available_memory() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
  const std::int64_t page = sysconf(_SC_PAGE_SIZE);
  std::int64_t bytes = pages > 0 && page > 0 ? pages * page : std::numeric_limits<std::int64_t>::max();
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::int64_t limit = 0;
  if (limit_file >> limit && limit > 0) bytes = std::min(bytes, limit);
  return bytes;
}

void Scratch::FreeAligned::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{kAlignment});
}

void* Scratch::take_bytes(std::size_t bytes) {
  constexpr std::size_t kFirstChunk = std::size_t{1} << 20;
  const std::size_t rounded = std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  // Chunks are never moved, so that what was taken stays where it is; a chunk too small is passed over.
  while (chunk_ < chunks_.size() && used_ + rounded > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const std::size_t last = chunks_.empty() ? kFirstChunk / 2 : chunks_.back().size;
    const std::size_t size = std::max(rounded, 2 * last);
    auto* memory = static_cast<std::byte*>(::operator new[](size, std::align_val_t{kAlignment}));
    chunks_.push_back({std::unique_ptr<std::byte[], FreeAligned>(memory), size});
    used_ = 0;
  }
  std::byte* taken = chunks_[chunk_].memory.get() + used_;
  used_ += rounded;
  return taken;
}

std::size_t Scratch::capacity() const {
  std::size_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.size;
  return sum;
}

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
    throw_error<InvalidArgument>("The number of threads must be at least 1, not {}.", threads);
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
    throw_error<Error>("{} threads cannot be started ({}), {} can: ask for fewer.", threads,
                       error.code().message(), started);
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
