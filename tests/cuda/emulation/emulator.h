#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

// Runs the threads of a kernel on the CPU, so that a kernel's own source can be tested where no GPU is: one
// fiber a thread, blocks one after another in the order of the schedule. A fiber runs until it waits for
// others, so that everything between two barriers happens at once, in that order, too: a missing barrier,
// or a block that needs what another one writes, shows as a wrong result. Shared memory is filled with NaN
// before each block. Not for several threads of the host.
namespace olrank::emulation {

struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

constexpr int kWarp = 32;

/// In which order blocks run, and fibers between two barriers: warp by warp, each as far as it comes
/// without the others, or all at random.
enum class Schedule { kForward, kBackward, kRandom };
void set_schedule(Schedule schedule);
Schedule schedule();

/// Runs `thread` once for every thread of the grid. Throws std::logic_error when threads wait for what
/// never comes, when lanes of a warp name different masks, or for sizes that no GPU takes.
void run_grid(Extent grid, Extent block, std::size_t shared_bytes, const std::function<void()>& thread);

/// Blocks run so far.
std::int64_t blocks_run();

// The rest is called from within a thread.

void* shared_memory();
void block_barrier();
int lane();

/// What each lane of a warp shows the others.
struct LaneWords {
  std::array<std::uint64_t, 3> word{};
};

/// Waits until all lanes of `mask` have called, then returns what they showed, by lane; valid until the
/// caller's next call.
const std::array<LaneWords, kWarp>& exchange(std::uint32_t mask, const LaneWords& own);

/// A copy to shared memory that happens when it is waited for, and the end of a group of them.
void copy_later(void* to, const void* from, std::size_t bytes);
void end_copy_group();
/// Waits until at most `pending` groups of this thread are left.
void wait_for_copy_groups(int pending);

extern Extent thread_index;
extern Extent block_index;
extern Extent block_extent;
extern Extent grid_extent;

}  // namespace olrank::emulation
