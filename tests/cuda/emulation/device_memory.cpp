#include "tests/cuda/emulation/device_memory.h"

#include <fmt/format.h>
#include <sanitizer/asan_interface.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.h"
#include "tests/cuda/emulation/emulator.h"

namespace olrank::emulation {
namespace {

constexpr std::size_t kReserved = std::size_t{1} << 38;  // of addresses, most of them never used
constexpr std::size_t kAlignment = 256;                  // cudaMalloc's
constexpr std::size_t kFence = 256;                      // before and after every array
// NaN in float and in double, so that reading it shows: arithmetic passes the bits on, and nothing else
// makes them. The lowest byte first.
constexpr std::uint32_t kPoison = 0xFFF5A3C7U;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

std::byte poison_at(const std::byte* place) {
  return static_cast<std::byte>(kPoison >> 8 * (std::bit_cast<std::uintptr_t>(place) % sizeof kPoison));
}

void poison(std::byte* first, std::size_t bytes) {
  const std::byte* end = first + bytes;
  for (; first != end && std::bit_cast<std::uintptr_t>(first) % sizeof kPoison != 0; ++first)
    *first = poison_at(first);
  auto* words = reinterpret_cast<std::uint32_t*>(first);
  const auto count = static_cast<std::size_t>(end - first) / sizeof kPoison;
  std::fill_n(words, count, kPoison);
  for (first += count * sizeof kPoison; first != end; ++first) *first = poison_at(first);
}

/// Bytes of the device that had been selected, by the first of them.
struct Range {
  std::size_t bytes = 0;
  int device = 0;
};
using Ranges = std::map<const std::byte*, Range>;

/// The range in which these bytes lie, or null.
const Range* range_of(const Ranges& ranges, const void* first, std::size_t bytes = 1) {
  const auto* begin = static_cast<const std::byte*>(first);
  auto found = ranges.upper_bound(begin);
  if (found == ranges.begin()) return nullptr;
  --found;
  const auto offset = static_cast<std::size_t>(begin - found->first);
  return offset + bytes <= found->second.bytes ? &found->second : nullptr;
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::byte* inaccessible_addresses(std::size_t bytes) {
  void* reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) throw std::runtime_error("Cannot reserve addresses for the emulated device.");
  return static_cast<std::byte*>(reserved);
}

void set_protection(const std::byte* first, std::size_t bytes, int allowed) {
  if (bytes > 0 && mprotect(const_cast<std::byte*>(first), bytes, allowed) != 0)
    throw std::runtime_error("Cannot change the protection of the emulated device's memory.");
}

/// Ranges of addresses, of which some bytes are mapped. Ranges are not reused while any exists.
class AddressSpace {
 public:
  AddressSpace() : base_(inaccessible_addresses(kAll)), end_(base_) {}

  std::byte* reserve() {
    if (end_ == base_ + kAll) throw std::runtime_error("The emulated device has run out of addresses.");
    mapped_.emplace(end_, Range{});
    return std::exchange(end_, end_ + kReservedAtOnce);
  }
  /// The new bytes continue those that are mapped.
  void map(std::byte* first, std::size_t bytes) {
    const auto found = std::prev(mapped_.upper_bound(first));
    std::size_t& mapped = found->second.bytes;
    if (found->first + mapped != first || bytes % page_bytes() != 0 || mapped + bytes > kReservedAtOnce)
      throw std::logic_error("Memory was mapped elsewhere than at the end of a range.");
    mapped += bytes;
  }
  void unmap(std::byte* reserved) {
    const std::size_t bytes = mapped_.at(reserved).bytes;
    mapped_.erase(reserved);
    set_protection(reserved, bytes, PROT_NONE);
    madvise(reserved, bytes, MADV_DONTNEED);
    if (mapped_.empty()) end_ = base_;
  }

  void protect(int allowed) const {
    for (const auto& [first, range] : mapped_) set_protection(first, range.bytes, allowed);
  }
  bool holds(const void* first, std::size_t bytes) const {
    return range_of(mapped_, first, bytes) != nullptr;
  }
  bool reserved(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= base_ && byte < base_ + kAll;
  }

 private:
  static constexpr std::size_t kAll = 4096 * kReservedAtOnce;

  std::byte* base_;
  std::byte* end_;  // of the addresses reserved so far
  Ranges mapped_;   // by the first byte of each range
};

thread_local int selected = 0;

/// Arrays are allocated one after another in one range of addresses. Addresses are not reused while any
/// array exists, so that a use after free does not hit another array.
struct Arena {
  Arena();
  void protect(int allowed) const {
    set_protection(base, round_up(static_cast<std::size_t>(end - base), page_bytes()), allowed);
    space.protect(allowed);
  }
  bool reserved(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return space.reserved(address) || (byte >= base && byte < base + kReserved);
  }
  bool belongs_to_another_device(const void* address) const {
    const Range* range = range_of(arrays, address);
    return range != nullptr && range->device != selected;
  }

  std::byte* base = inaccessible_addresses(kReserved);
  std::byte* end = base;  // of the addresses allocated so far
  int users = 0;          // OnDevice
  Ranges arrays;
  AddressSpace space;
};

Arena& arena() {
  static Arena made;
  return made;
}

#if !defined(__SANITIZE_ADDRESS__)
/// Reports the access and lets it happen again, now fatally.
void tell_fault(int number, siginfo_t* info, void*) {
  constexpr char kSentence[] =
      "The host accessed device memory, or a kernel accessed device memory that is not allocated.\n";
  if (arena().reserved(info->si_addr)) {
    const ssize_t ignored = write(STDERR_FILENO, kSentence, sizeof kSentence - 1);
    static_cast<void>(ignored);
  }
  signal(number, SIG_DFL);
}
#endif

Arena::Arena() {
#if !defined(__SANITIZE_ADDRESS__)
  struct sigaction action {};
  action.sa_sigaction = &tell_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
#endif
}

/// Whether the fences are intact.
bool give_back(std::byte* first, std::size_t bytes) {
  const OnDevice here;
  const std::size_t behind = round_up(bytes, kAlignment) - bytes + kFence;
  ASAN_UNPOISON_MEMORY_REGION(first - kFence, kFence + bytes + behind);
  const auto untouched = [](const std::byte* fence, std::size_t size) {
    return std::all_of(fence, fence + size, [](const std::byte& byte) { return byte == poison_at(&byte); });
  };
  const bool good = untouched(first - kFence, kFence) && untouched(first + bytes, behind);
  poison(first, bytes);
  ASAN_POISON_MEMORY_REGION(first - kFence, kFence + bytes + behind);

  // Whole pages of large arrays are returned to the system.
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  const std::size_t page = page_bytes();
  const std::size_t from = round_up(static_cast<std::size_t>(first - arena().base), page);
  const std::size_t to = static_cast<std::size_t>(first + bytes - arena().base) / page * page;
  if (to >= from + kLarge) madvise(arena().base + from, to - from, MADV_DONTNEED);
  return good;
}

int devices = 1;
std::atomic<std::uint64_t> contexts{0};  // a bit for each device

Ranges& pinned() {
  static Ranges ranges;
  return ranges;
}

/// Whether a number is a mapped address outside the device's memory.
bool is_host_address(std::uintptr_t number) {
  constexpr std::uintptr_t kLowest = std::uintptr_t{1} << 16;
  constexpr std::uintptr_t kHighest = std::uintptr_t{1} << 47;
  if (number < kLowest || number >= kHighest) return false;
  const std::uintptr_t page = page_bytes();
  auto* address = reinterpret_cast<void*>(number / page * page);
  if (arena().reserved(address)) return false;
  unsigned char resident = 0;
  return mincore(address, 1, &resident) == 0;
}

}  // namespace

std::recursive_mutex& emulator_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

void select_device(int index) {
  if (index < 0 || index >= devices) throw CudaError(fmt::format("There is no device {}.", index));
  selected = index;
  contexts |= std::uint64_t{1} << index;
}

bool has_context(int index) {
  return (contexts >> index & 1U) != 0;
}

int selected_device() {
  return selected;
}

void set_device_count(int count) {
  devices = count;
  contexts = 0;
}

std::size_t bytes_allocated_on(int index) {
  const std::lock_guard turn(emulator_mutex());
  std::size_t bytes = 0;
  for (const auto& [first, range] : arena().arrays) bytes += range.device == index ? range.bytes : 0;
  return bytes;
}

void* allocate_on_device(std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  Arena& there = arena();
  const std::size_t taken = kFence + round_up(bytes, kAlignment) + kFence;
  if (static_cast<std::size_t>(there.end - there.base) + taken > kReserved)
    throw std::runtime_error("The emulated device has run out of addresses.");
  std::byte* first = there.end + kFence;
  there.end += taken;
  const OnDevice here;
  there.protect(PROT_READ | PROT_WRITE);  // new pages too
  ASAN_UNPOISON_MEMORY_REGION(first - kFence, taken);
  poison(first - kFence, taken);
  ASAN_POISON_MEMORY_REGION(first - kFence, taken);
  ASAN_UNPOISON_MEMORY_REGION(first, bytes);
  there.arrays.emplace(first, Range{bytes, selected});
  ++counts.allocations;
  return first;
}

void free_on_device(void* array) {
  const std::lock_guard turn(emulator_mutex());
  Arena& there = arena();
  const auto found = there.arrays.find(static_cast<const std::byte*>(array));
  if (found == there.arrays.end()) throw std::logic_error("An array was freed that is not allocated.");
  const std::size_t bytes = found->second.bytes;
  there.arrays.erase(found);
  const bool good = give_back(static_cast<std::byte*>(array), bytes);
  if (there.arrays.empty() && there.users == 0) there.end = there.base;
  if (!good) throw std::logic_error("A kernel wrote outside the bounds of an array.");
}

std::byte* reserve_on_device() {
  const std::lock_guard turn(emulator_mutex());
  return arena().space.reserve();
}

void map_on_device(std::byte* first, std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  arena().space.map(first, bytes);
  const OnDevice here;
  set_protection(first, bytes, PROT_READ | PROT_WRITE);  // if the device was already open
  poison(first, bytes);
}

void unmap_on_device(std::byte* reserved) {
  const std::lock_guard turn(emulator_mutex());
  arena().space.unmap(reserved);
}

bool lies_on_device(const void* first, std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  if (arena().belongs_to_another_device(first))
    throw std::logic_error("A copy uses memory of another device.");
  return machine.shares_host_memory || range_of(arena().arrays, first, bytes) != nullptr ||
         arena().space.holds(first, bytes);
}

void copy_to_host(void* to, const void* from, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  const auto* place = first + (sizeof kPoison - std::bit_cast<std::uintptr_t>(first)) % sizeof kPoison;
  for (; place + sizeof kPoison <= first + bytes; place += sizeof kPoison) {
    if (*reinterpret_cast<const std::uint32_t*>(place) != kPoison) continue;
    throw std::logic_error(
        fmt::format("A copy of {} bytes to the host reads memory that was never written, at byte {}.",
                    bytes, place - first));
  }
  std::memcpy(to, from, bytes);
}

OnDevice::OnDevice() {
  const std::lock_guard turn(emulator_mutex());
  if (arena().users++ == 0) arena().protect(PROT_READ | PROT_WRITE);
}

OnDevice::~OnDevice() {
  const std::lock_guard turn(emulator_mutex());
  if (--arena().users == 0) arena().protect(PROT_NONE);
}

void register_pinned(void* first, std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  pinned().emplace(static_cast<const std::byte*>(first), Range{bytes});
}

void forget_pinned(void* first) {
  const std::lock_guard turn(emulator_mutex());
  pinned().erase(static_cast<const std::byte*>(first));
}

bool lies_in_pinned_memory(const void* first, std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  return range_of(pinned(), first, bytes) != nullptr;
}

void check_argument_bytes(const void* argument, std::size_t bytes) {
  if (machine.shares_host_memory) return;
  const std::lock_guard turn(emulator_mutex());
  std::uintptr_t number = 0;
  for (std::size_t at = 0; at + sizeof number <= bytes; at += sizeof number) {
    std::memcpy(&number, static_cast<const std::byte*>(argument) + at, sizeof number);
    if (is_host_address(number)) throw std::logic_error("A kernel argument holds a host address.");
    if (arena().belongs_to_another_device(reinterpret_cast<const void*>(number)))
      throw std::logic_error("A kernel argument holds an address of another device.");
  }
}

}  // namespace olrank::emulation
