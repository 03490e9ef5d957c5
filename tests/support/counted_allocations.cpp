#include "tests/support/counted_allocations.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> bytes_held{0};
std::atomic<std::int64_t> most_held{0};

std::int64_t held_by(void* memory) {
  return memory == nullptr ? 0
                           : static_cast<std::int64_t>(malloc_usable_size(memory) + sizeof(std::size_t));
}

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<std::size_t>(bytes, 1)) != 0)
    throw std::bad_alloc();
  const std::int64_t added = held_by(memory);
  const std::int64_t held = bytes_held.fetch_add(added, std::memory_order_relaxed) + added;
  std::int64_t most = most_held.load(std::memory_order_relaxed);
  while (held > most && !most_held.compare_exchange_weak(most, held, std::memory_order_relaxed)) {
  }
  return memory;
}

// Not inlined: the compiler would warn about free() on a pointer that operator new returned.
[[gnu::noinline]] void release(void* memory) {
  bytes_held.fetch_sub(held_by(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

// All other forms of new and delete call these, but for the one that does not throw under a sanitizer,
// which has its own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace olrank {

std::int64_t allocation_count() {
  return allocations.load();
}

std::int64_t allocated_bytes() {
  return bytes_held.load();
}

std::int64_t most_allocated_bytes() {
  return most_held.load();
}

void restart_most_allocated_bytes() {
  most_held = bytes_held.load();
}

}  // namespace olrank
