#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/ranks/rank_group.h"

namespace olrank {

/// Memory through which threads exchange bytes as ranks do.
class SharedMemory {
 public:
  explicit SharedMemory(int ranks) : of_rank_(ranks) {}

  void all_gather(int rank, std::span<const std::byte> mine, std::span<std::byte> all) {
    std::unique_lock lock(mutex_);
    of_rank_[rank].assign(mine.begin(), mine.end());
    meet(lock);
    std::size_t at = 0;
    for (const auto& bytes : of_rank_) {
      if (at + bytes.size() > all.size()) throw RankLost("The ranks send different numbers of bytes.");
      std::copy(bytes.begin(), bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
      at += bytes.size();
    }
    meet(lock);
  }
  /// Of a rank that has ended: the others' exchanges fail.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    arrived_here_.notify_all();
  }

 private:
  void meet(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t meeting = meetings_;
    if (++arrived_ == of_rank_.size()) {
      arrived_ = 0;
      ++meetings_;
      arrived_here_.notify_all();
    }
    arrived_here_.wait(lock, [&] { return meetings_ != meeting || left_; });
    if (meetings_ == meeting) throw RankLost("Another rank has ended.");
  }

  std::mutex mutex_;
  std::condition_variable arrived_here_;
  std::vector<std::vector<std::byte>> of_rank_;
  std::size_t arrived_ = 0;
  std::uint64_t meetings_ = 0;
  bool left_ = false;
};

/// Calls `play` on one thread for each rank. Returns what each threw, empty for nothing.
inline std::vector<std::string> play_ranks(int ranks, const std::function<void(RankGroup& group)>& play) {
  class Transport : public RankTransport {
   public:
    Transport(int rank, SharedMemory& memory) : rank_(rank), memory_(memory) {}
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
      memory_.all_gather(rank_, mine, all);
    }

   private:
    int rank_;
    SharedMemory& memory_;
  };

  SharedMemory memory(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        RankGroup group(rank, ranks, std::make_unique<Transport>(rank, memory));
        play(group);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
        memory.leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace olrank
