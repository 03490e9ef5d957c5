#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/ranks/rank_group.h"

namespace olrank {

/// Memory that forked processes share.
struct ForkedMemory {
  static constexpr std::size_t kMostRanks = 4;
  static constexpr std::size_t kMostBytes = 1 << 21;  // of an exchange and of a result

  pthread_barrier_t meeting;
  std::array<std::size_t, kMostRanks> sizes;
  std::array<std::array<char, kMostBytes>, kMostRanks> bytes;
};

/// Calls `play` in one process for each rank, for code that is not made for threads. Returns what each
/// returned, or its exception.
inline std::vector<std::string> play_forked_ranks(
    int ranks, const std::function<std::string(RankGroup& group)>& play) {
  class Transport : public RankTransport {
   public:
    Transport(int rank, ForkedMemory& memory) : rank_(rank), memory_(memory) {}
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
      if (mine.size() > ForkedMemory::kMostBytes) throw std::length_error("The exchange is too large.");
      std::memcpy(memory_.bytes[rank_].data(), mine.data(), mine.size());
      pthread_barrier_wait(&memory_.meeting);
      for (std::size_t rank = 0; rank * mine.size() < all.size(); ++rank)
        std::memcpy(all.data() + rank * mine.size(), memory_.bytes[rank].data(), mine.size());
      pthread_barrier_wait(&memory_.meeting);
    }

   private:
    int rank_;
    ForkedMemory& memory_;
  };

  void* place =
      ::mmap(nullptr, sizeof(ForkedMemory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::bad_alloc();
  auto* memory = static_cast<ForkedMemory*>(place);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&memory->meeting, &attributes, static_cast<unsigned>(ranks));
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    ::alarm(100);  // a rank that waits for one that has failed
    std::string result;
    try {
      RankGroup group(rank, ranks, std::make_unique<Transport>(rank, *memory));
      result = play(group);
    } catch (const std::exception& error) {
      result = error.what();
    }
    memory->sizes[rank] = std::min(result.size(), ForkedMemory::kMostBytes);
    std::memcpy(memory->bytes[rank].data(), result.data(), memory->sizes[rank]);
    ::_exit(0);
  }
  std::vector<std::string> results;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ::waitpid(children[rank], &status, 0);
    results.push_back(status == 0 ? std::string(memory->bytes[rank].data(), memory->sizes[rank])
                                  : "The process did not end by itself.");
  }
  ::munmap(place, sizeof(ForkedMemory));
  return results;
}

}  // namespace olrank
