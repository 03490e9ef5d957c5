#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace olrank {

/// Temporary memory of one operation, allocated from a stack and released when its frame ends. The stack
/// grows to the size of the largest frame and then allocates no more.
class Scratch {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// Releases everything taken during its lifetime; frames nest.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), chunk_(scratch.chunk_), used_(scratch.used_) {}
    ~Frame() {
      scratch_.chunk_ = chunk_;
      scratch_.used_ = used_;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t chunk_;
    std::size_t used_;
  };

  /// Uninitialised and aligned to a cache line.
  template <class T>
  std::span<T> take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return {static_cast<T*>(take_bytes(count * sizeof(T))), count};
  }

  std::size_t capacity() const;

 private:
  struct FreeAligned {
    void operator()(std::byte* memory) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte[], FreeAligned> memory;
    std::size_t size = 0;
  };

  void* take_bytes(std::size_t bytes);

  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the one being filled
  std::size_t used_ = 0;   // bytes of it
};

}  // namespace olrank
