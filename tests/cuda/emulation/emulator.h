#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

// Runs the threads of a kernel on the CPU, so that kernel source can be tested without a GPU: one fiber per
// thread, blocks one after another in the schedule's order. A fiber runs until it waits for others, so a
// missing barrier, or a block that needs another block's output, shows as a wrong result in some schedule.
// The blocks of a cooperative grid run together instead, each as far as it can without the others.
// Shared memory is filled with NaN before each block. Not thread-safe.
namespace olrank::emulation {

struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

constexpr int kWarp = 32;

/// The order of blocks, and of fibers between two barriers: warp by warp, each as far as it can run without
/// the others, or at random.
enum class Schedule { kForward, kBackward, kRandom };
inline constexpr Schedule kSchedules[] = {Schedule::kForward, Schedule::kBackward, Schedule::kRandom};

/// Runs `thread` once for every thread of the grid. Throws std::logic_error on deadlock, if lanes of a warp
/// use different masks, or for sizes beyond the limits of GPUs.
void run_grid(Extent grid, Extent block, std::size_t shared_bytes, const std::function<void()>& thread);

/// Does so for a cooperative grid, whose blocks may wait for each other. Throws, too, for more blocks than
/// the device runs at once, and if a thread ends while others wait at a barrier of the grid.
void run_grid_together(Extent grid, Extent block, std::size_t shared_bytes,
                       const std::function<void()>& thread);

/// A kind of card, by what its blocks share.
struct Card {
  std::int64_t multiprocessors = 0;
  std::size_t shared_bytes = 0;  // that a block can have; a multiprocessor has 1 KB more
  std::size_t threads = 0;       // of a multiprocessor

  /// Blocks of a kernel with so many registers a thread that the card runs at once.
  std::int64_t blocks_at_once(std::size_t registers, std::size_t threads_of_block,
                              std::size_t shared_bytes_of_block) const;
};
constexpr Card kHopper{132, 227 * 1024, 2048};  // H100 and H200
constexpr Card kAmpere{108, 163 * 1024, 2048};  // A100
constexpr Card kAda{142, 99 * 1024, 1536};

/// Says how the emulated devices behave; tests change it.
struct Machine {
  Schedule schedule = Schedule::kForward;
  Card card = kHopper;
  unsigned blocks_at_once = 3;       // of a cooperative grid; 0: none, as on a device without them
  bool maps_memory = true;           // or its arrays cannot grow in place
  bool shares_host_memory = false;   // work on a device may use memory of the host
  int recordings_to_fail = 0;        // of the next, as they may when others use the driver
  bool factorisations_fail = false;  // with OutOfDeviceMemory
  std::int64_t most_factorised = std::numeric_limits<std::int64_t>::max();  // has room for fewer rows
};
inline Machine machine;

/// How often they have done something so far.
struct Counts {
  std::int64_t blocks_run = 0;
  std::int64_t starts = 0;       // of work in a stream
  std::int64_t waits = 0;        // of the host, for work or for a copy from or to memory that is not pinned
  std::int64_t graphs_made = 0;  // with replacements that were no updates
  std::int64_t allocations = 0;  // of arrays
  std::int64_t factorisations = 0;
  std::int64_t solves = 0;  // of all columns of a call
};
inline Counts counts;

// The functions below are called by emulated threads.

void* shared_memory();
void block_barrier();
/// Waits for so many blocks with the same mark, or for all of the launch without one.
void grid_barrier(const void* mark = nullptr, std::size_t blocks = 0);
int lane();

/// The values that the lanes of a warp exchange.
struct LaneWords {
  std::array<std::uint64_t, 6> word{};
};

/// Waits until all lanes of `mask` have called, then returns their values by lane, valid until the caller's
/// next call.
const std::array<LaneWords, kWarp>& exchange(std::uint32_t mask, const LaneWords& own);

/// A copy to shared memory that happens when it is awaited, and the end of a group of copies.
void copy_later(void* to, const void* from, std::size_t bytes);
void end_copy_group();
/// Waits until at most `pending` groups of this thread are left.
void wait_for_copy_groups(int pending);

extern Extent thread_index;
extern Extent block_index;
extern Extent block_extent;
extern Extent grid_extent;

}  // namespace olrank::emulation
