#include "core/runtime/execution_context.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

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

}  // namespace olrank
