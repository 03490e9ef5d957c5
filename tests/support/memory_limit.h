#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace olrank {

/// Lets the process reserve `more` bytes than it has now until the end of the scope, so that an allocation
/// out of proportion fails. AddressSanitizer reserves terabytes and has no limit.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    std::ifstream pages_of("/proc/self/statm");
    rlim_t pages = 0;
    pages_of >> pages;
    const rlimit limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGE_SIZE)) + more, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
#else
    static_cast<void>(more);
#endif
  }
  ~MemoryLimit() {
    ::setrlimit(RLIMIT_AS, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace olrank
