#include "bench/measurement.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/math/host_device.h"
#include "core/runtime/execution_context.h"

namespace olrank {
namespace {

using Word = std::uint64_t;

// Eight numbers fill the widest vector registers. Where there are only narrower ones, compilers keep them
// in memory, and loops over four are faster.
constexpr std::size_t kLanes = 8;
constexpr std::size_t kNarrowLanes = 4;
template <std::size_t lanes>
struct WordsOf {
  typedef Word Type __attribute__((vector_size(lanes * sizeof(Word))));
};

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

template <std::size_t streams, std::size_t lanes>
OLRANK_ALWAYS_INLINE Word sum_from(const Word* words, std::size_t count) {
  using Words = typename WordsOf<lanes>::Type;
  const std::size_t length = count / streams / lanes * lanes;
  Words sums[streams] = {};
  Words some;
  for (std::size_t k = 0; k < length; k += lanes) {
    for (std::size_t s = 0; s < streams; ++s) {
      std::memcpy(&some, words + s * length + k, sizeof some);
      sums[s] += some;
    }
  }
  for (std::size_t k = streams * length; k < count; k += lanes) {
    std::memcpy(&some, words + k, sizeof some);
    sums[0] += some;
  }
  for (std::size_t s = 1; s < streams; ++s) sums[0] += sums[s];
  Word first = 0;
  std::memcpy(&first, &sums[0], sizeof first);
  return first;
}

OLRANK_VECTOR_CLONES
Word sum_from_few(const Word* words, std::size_t count) {
  return sum_from<2, kLanes>(words, count);
}

OLRANK_VECTOR_CLONES
Word sum_from_narrow(const Word* words, std::size_t count) {
  return sum_from<2, kNarrowLanes>(words, count);
}

OLRANK_VECTOR_CLONES
Word sum_from_many(const Word* words, std::size_t count) {
  return sum_from<8, kLanes>(words, count);
}

/// Copies, and for each vector copied adds in place to `updates_each` vectors of `updated`.
template <std::size_t lanes>
OLRANK_ALWAYS_INLINE void copy_plainly(const Word* from, Word* to, std::size_t count, Word* updated,
                                       std::size_t updates_each) {
  using Words = typename WordsOf<lanes>::Type;
  Words some;
  Words other;
  for (std::size_t k = 0; k < count; k += lanes) {
    std::memcpy(&some, from + k, sizeof some);
    std::memcpy(to + k, &some, sizeof some);
    for (std::size_t u = 0; u < updates_each; ++u, updated += lanes) {
      std::memcpy(&other, updated, sizeof other);
      other += some;
      std::memcpy(updated, &other, sizeof other);
    }
    asm volatile("" ::: "memory");  // otherwise the compiler emits memcpy
  }
}

template <std::size_t lanes>
OLRANK_ALWAYS_INLINE void fill_plainly(Word* words, std::size_t count, Word value) {
  using Words = typename WordsOf<lanes>::Type;
  Words all{};
  all += value;
  for (std::size_t k = 0; k < count; k += lanes) {
    std::memcpy(words + k, &all, sizeof all);
    asm volatile("" ::: "memory");  // otherwise the compiler emits memset
  }
}

/// Adds in place to every vector of `words`: `addend` and `reads_each` vectors of `read`.
template <std::size_t lanes>
OLRANK_ALWAYS_INLINE void add_in_place(Word* words, std::size_t count, Word addend, const Word* read,
                                       std::size_t reads_each) {
  using Words = typename WordsOf<lanes>::Type;
  Words some;
  Words other;
  for (std::size_t k = 0; k < count; k += lanes) {
    std::memcpy(&some, words + k, sizeof some);
    some += addend;
    for (std::size_t r = 0; r < reads_each; ++r, read += lanes) {
      std::memcpy(&other, read, sizeof other);
      some += other;
    }
    std::memcpy(words + k, &some, sizeof some);
  }
}

/// The three loops in one width.
struct Loops {
  void (*copy)(const Word* from, Word* to, std::size_t count, Word* updated, std::size_t updates_each);
  void (*fill)(Word* words, std::size_t count, Word value);
  void (*add)(Word* words, std::size_t count, Word addend, const Word* read, std::size_t reads_each);
};

OLRANK_VECTOR_CLONES
void copy_wide(const Word* from, Word* to, std::size_t count, Word* updated, std::size_t updates_each) {
  copy_plainly<kLanes>(from, to, count, updated, updates_each);
}
OLRANK_VECTOR_CLONES
void copy_narrow(const Word* from, Word* to, std::size_t count, Word* updated, std::size_t updates_each) {
  // A number that the compiler knows unrolls the inner loop.
  if (updates_each == 1) return copy_plainly<kNarrowLanes>(from, to, count, updated, 1);
  copy_plainly<kNarrowLanes>(from, to, count, updated, updates_each);
}
OLRANK_VECTOR_CLONES
void fill_wide(Word* words, std::size_t count, Word value) {
  fill_plainly<kLanes>(words, count, value);
}
OLRANK_VECTOR_CLONES
void fill_narrow(Word* words, std::size_t count, Word value) {
  fill_plainly<kNarrowLanes>(words, count, value);
}
OLRANK_VECTOR_CLONES
void add_wide(Word* words, std::size_t count, Word addend, const Word* read, std::size_t reads_each) {
  add_in_place<kLanes>(words, count, addend, read, reads_each);
}
OLRANK_VECTOR_CLONES
void add_narrow(Word* words, std::size_t count, Word addend, const Word* read, std::size_t reads_each) {
  add_in_place<kNarrowLanes>(words, count, addend, read, reads_each);
}

}  // namespace

std::function<void()> bare_traffic(const MemoryTraffic& traffic, ReadStreams streams, Stores stores) {
  const double copied = std::min(traffic.read, traffic.written);
  return [from = Buffer(copied, 0), to = Buffer(copied, 1088),
          only_read = Buffer(traffic.read - copied, 2176),
          only_written = Buffer(traffic.written - copied, 3264), updated = Buffer(traffic.updated, 576),
          sum_of = streams == ReadStreams::kFew    ? sum_from_few
                   : streams == ReadStreams::kMany ? sum_from_many
                                                   : sum_from_narrow,
          loops = streams == ReadStreams::kNarrow ? Loops{copy_narrow, fill_narrow, add_narrow}
                                                  : Loops{copy_wide, fill_wide, add_wide},
          stores, fill = Word{0}]() mutable {
    Word seen = 1;
    std::size_t updated_so_far = 0;
    if (!from.empty()) {
      if (stores == Stores::kLibrary) {
        std::memcpy(to.data(), from.data(), bytes_of(from));
      } else {
        const std::size_t updates_each = updated.size() / from.size();
        loops.copy(from.data(), to.data(), from.size(), updated.data(), updates_each);
        updated_so_far = updates_each * from.size();
      }
      seen += to[to.size() / 2];
    }
    if (!only_written.empty()) {
      if (stores == Stores::kLibrary) {
        std::memset(only_written.data(), 0, bytes_of(only_written));  // some processors write zeros faster
      } else {
        loops.fill(only_written.data(), only_written.size(), ++fill);
      }
    }
    // Interleaving reads with updates is faster than reading first.
    const std::size_t left = updated.size() - updated_so_far;
    const std::size_t reads_each = left == 0 ? 0 : only_read.size() / left;
    loops.add(updated.data() + updated_so_far, left, seen, only_read.data(), reads_each);
    const std::size_t done = reads_each * left;
    seen += sum_of(only_read.data() + done, only_read.size() - done);
    // The result feeds the next reads, so the compiler cannot remove any work.
    if (!from.empty()) from[0] = seen;
    if (!only_read.empty()) only_read[0] = seen;
  };
}

}  // namespace olrank
