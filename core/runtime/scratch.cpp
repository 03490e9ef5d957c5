#include "core/runtime/scratch.h"

#include <algorithm>
#include <new>

namespace olrank {

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

}  // namespace olrank
