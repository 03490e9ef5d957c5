#include "apps/bench/memory_traffic.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/runtime/aligned_vector.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

using Word = std::uint64_t;

// Eight numbers; the compiler splits them to fit the vector registers.
constexpr std::size_t kLanes = 8;
using Words = Word __attribute__((vector_size(kLanes * sizeof(Word))));

/// Words at a chosen place within a page of 4,096 bytes. Loads that follow stores to the same place of
/// another page wait for them on many processors, so that a ceiling would depend on where the heap put its
/// buffers.
class Buffer {
 public:
  Buffer(double bytes, std::size_t place)
      : size_((static_cast<std::size_t>(bytes / sizeof(Word)) + kLanes - 1) / kLanes * kLanes),
        words_(size_ + kPage / sizeof(Word), 1) {
    const std::size_t here = reinterpret_cast<std::uintptr_t>(words_.data()) % kPage;
    lead_ = (place + kPage - here) % kPage / sizeof(Word);
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Word* data() { return words_.data() + lead_; }
  Word& operator[](std::size_t k) { return data()[k]; }

 private:
  static constexpr std::size_t kPage = 4096;

  std::size_t size_;
  AlignedVector<Word> words_;
  std::size_t lead_ = 0;
};

std::size_t bytes_of(const Buffer& buffer) {
  return buffer.size() * sizeof(Word);
}

template <std::size_t streams>
OLRANK_ALWAYS_INLINE Word sum_from(const Word* words, std::size_t count) {
  const std::size_t length = count / streams / kLanes * kLanes;
  Words sums[streams] = {};
  Words some;
  for (std::size_t k = 0; k < length; k += kLanes) {
    for (std::size_t s = 0; s < streams; ++s) {
      std::memcpy(&some, words + s * length + k, sizeof some);
      sums[s] += some;
    }
  }
  for (std::size_t k = streams * length; k < count; k += kLanes) {
    std::memcpy(&some, words + k, sizeof some);
    sums[0] += some;
  }
  for (std::size_t s = 1; s < streams; ++s) sums[0] += sums[s];
  return sums[0][0];
}

OLRANK_VECTOR_CLONES
Word sum_from_few(const Word* words, std::size_t count) {
  return sum_from<2>(words, count);
}

OLRANK_VECTOR_CLONES
Word sum_from_many(const Word* words, std::size_t count) {
  return sum_from<8>(words, count);
}

/// Copies, and for each vector copied adds in place to `updates_each` vectors of `updated`.
OLRANK_VECTOR_CLONES
void copy_plainly(const Word* from, Word* to, std::size_t count, Word* updated, std::size_t updates_each) {
  Words some;
  Words other;
  for (std::size_t k = 0; k < count; k += kLanes) {
    std::memcpy(&some, from + k, sizeof some);
    std::memcpy(to + k, &some, sizeof some);
    for (std::size_t u = 0; u < updates_each; ++u, updated += kLanes) {
      std::memcpy(&other, updated, sizeof other);
      other += some;
      std::memcpy(updated, &other, sizeof other);
    }
    asm volatile("" ::: "memory");  // otherwise the compiler emits memcpy
  }
}

OLRANK_VECTOR_CLONES
void fill_plainly(Word* words, std::size_t count, Word value) {
  Words all{};
  all += value;
  for (std::size_t k = 0; k < count; k += kLanes) {
    std::memcpy(words + k, &all, sizeof all);
    asm volatile("" ::: "memory");  // otherwise the compiler emits memset
  }
}

/// Adds in place to every vector of `words`: `addend` and `reads_each` vectors of `read`.
OLRANK_VECTOR_CLONES
void add_in_place(Word* words, std::size_t count, Word addend, const Word* read, std::size_t reads_each) {
  Words some;
  Words other;
  for (std::size_t k = 0; k < count; k += kLanes) {
    std::memcpy(&some, words + k, sizeof some);
    some += addend;
    for (std::size_t r = 0; r < reads_each; ++r, read += kLanes) {
      std::memcpy(&other, read, sizeof other);
      some += other;
    }
    std::memcpy(words + k, &some, sizeof some);
  }
}

}  // namespace

std::function<void()> bare_traffic(const MemoryTraffic& traffic, ReadStreams streams, Stores stores) {
  const double copied = std::min(traffic.read, traffic.written);
  return [from = Buffer(copied, 0), to = Buffer(copied, 1088),
          only_read = Buffer(traffic.read - copied, 2176),
          only_written = Buffer(traffic.written - copied, 3264), updated = Buffer(traffic.updated, 576),
          sum_of = streams == ReadStreams::kFew ? sum_from_few : sum_from_many, stores,
          fill = Word{0}]() mutable {
    Word seen = 1;
    std::size_t updated_so_far = 0;
    if (!from.empty()) {
      if (stores == Stores::kLibrary) {
        std::memcpy(to.data(), from.data(), bytes_of(from));
      } else {
        const std::size_t updates_each = updated.size() / from.size();
        copy_plainly(from.data(), to.data(), from.size(), updated.data(), updates_each);
        updated_so_far = updates_each * from.size();
      }
      seen += to[to.size() / 2];
    }
    if (!only_written.empty()) {
      if (stores == Stores::kLibrary) {
        std::memset(only_written.data(), 0, bytes_of(only_written));  // some processors write zeros faster
      } else {
        fill_plainly(only_written.data(), only_written.size(), ++fill);
      }
    }
    // Interleaving reads with updates is faster than reading first.
    const std::size_t left = updated.size() - updated_so_far;
    const std::size_t reads_each = left == 0 ? 0 : only_read.size() / left;
    add_in_place(updated.data() + updated_so_far, left, seen, only_read.data(), reads_each);
    const std::size_t done = reads_each * left;
    seen += sum_of(only_read.data() + done, only_read.size() - done);
    // The result feeds the next reads, so the compiler cannot remove any work.
    if (!from.empty()) from[0] = seen;
    if (!only_read.empty()) only_read[0] = seen;
  };
}

}  // namespace olrank
