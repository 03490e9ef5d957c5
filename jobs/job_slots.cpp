#include "jobs/job_slots.h"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace olrank {

void run_in_slots(std::size_t count, int slots, const std::function<bool()>& stopping,
                  const std::function<void(std::size_t number, std::int64_t slot)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](std::int64_t slot) {
    while (!failed && !stopping()) {
      const std::size_t number = next++;
      if (number >= count) return;
      try {
        work(number, slot);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t slot = 1; slot < slots; ++slot) others.emplace_back(run, slot);
  run(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace olrank
