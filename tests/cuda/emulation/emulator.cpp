#include "tests/cuda/emulation/emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace olrank::emulation {

Extent thread_index;
Extent block_index;
Extent block_extent;
Extent grid_extent;

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

// The limits of every GPU since compute capability 8.0; the last is Hopper's.
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocksAcross = 65'535;  // in y and z
constexpr unsigned kMostBlocks = 0x7FFFFFFF;    // in x

// After its first start, fibers switch by the compiler's jumps, at a fraction of the cost of a context
// switch, which makes a system call for signals. Sanitizers support only the latter.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kJumps = false;
#else
constexpr bool kJumps = true;
#endif

struct PendingCopy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Copies {
  std::deque<std::vector<PendingCopy>> groups;
  std::vector<PendingCopy> open_group;
};

/// Runs threads one after another; a thread that waits keeps its fiber.
struct Fiber {
  void* place[5];  // of __builtin_setjmp()
  bool started = false;
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack;
};

struct Thread {
  enum class State { kReady, kAtBarrier, kInExchange, kAtGridBarrier, kDone };

  State state = State::kReady;
  Extent index;
  Fiber* fiber = nullptr;  // none before its start
};

struct Warp {
  std::uint32_t mask = 0;  // of the current exchange
  std::uint32_t arrived = 0;
  std::size_t turn = 0;
  std::array<std::array<LaneWords, kWarp>, 2> shown;  // one is read while the next is written
};

class Block {
 public:
  Block() { scheduler_.started = true; }
  void begin(Extent index, std::size_t threads, std::size_t shared_bytes,
             const std::function<void()>& thread);
  /// Runs each thread as far as it can without the others, warp by warp; returns false if all wait.
  bool advance();
  bool ended() const { return live_ == 0; }
  bool is_at_grid_barrier() const { return at_grid_barrier_ == order_.size(); }
  /// Which barrier of a grid it has reached, and of how many blocks; 0: of all.
  const void* mark() const { return mark_; }
  std::size_t meeting() const { return meeting_; }
  void pass_grid_barrier();

  void shuffle(std::span<std::size_t> order);

  void* shared() { return shared_.data(); }
  Copies& copies() { return copies_[running_]; }
  int lane() const { return static_cast<int>(running_ % kWarp); }
  void barrier();
  void grid_barrier(const void* mark, std::size_t blocks);
  const std::array<LaneWords, kWarp>& exchange(std::uint32_t mask, const LaneWords& own);
  /// Ends the grid with a message; does not return.
  void fail(std::string message);

 private:
  static void enter();
  static void jump(Fiber& from, Fiber& to);
  bool choose_next();
  Fiber* take_fiber();
  void go_on(Fiber& from);
  void yield() { go_on(*threads_[running_].fiber); }
  void finish();
  void release_barrier();

  Fiber scheduler_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_;
  std::vector<Thread> threads_;
  std::vector<Copies> copies_;  // of each thread
  std::vector<Warp> warps_;
  std::vector<std::uint64_t> shared_;
  const std::function<void()>* thread_ = nullptr;
  Extent index_;
  std::vector<std::size_t> order_;
  // Where advance() is in that order.
  std::size_t warp_ = 0;
  std::size_t place_ = 0;
  bool any_of_warp_ = false;
  bool any_ = false;
  std::size_t running_ = 0;
  std::size_t live_ = 0;
  std::size_t at_barrier_ = 0;
  std::size_t at_grid_barrier_ = 0;
  const void* mark_ = nullptr;
  std::size_t meeting_ = 0;
  std::string failure_;
  std::uint64_t coins_ = 0x9E3779B97F4A7C15U;
};

std::vector<std::unique_ptr<Block>> team;  // grows; its first block runs ordinary grids
Block* now = nullptr;                      // the block whose thread is running
bool together = false;                     // whether the blocks of the running grid may wait for each other

void Block::enter() {
  for (;;) {
    (*now->thread_)();
    now->finish();
  }
}

void Block::begin(Extent index, std::size_t threads, std::size_t shared_bytes,
                  const std::function<void()>& thread) {
  if (free_.size() != fibers_.size()) {  // a grid that failed has left threads on theirs
    free_.clear();
    for (const auto& fiber : fibers_) {
      fiber->started = false;
      free_.push_back(fiber.get());
    }
  }
  threads_.assign(threads, Thread{});
  for (std::size_t number = 0; number < threads; ++number) {
    const auto flat = static_cast<unsigned>(number);
    threads_[number].index = {flat % block_extent.x, flat / block_extent.x % block_extent.y,
                              flat / (block_extent.x * block_extent.y)};
  }
  copies_.resize(threads);
  for (Copies& copies : copies_) {
    copies.groups.clear();
    copies.open_group.clear();
  }
  warps_.resize(threads / kWarp);
  for (Warp& warp : warps_) warp.arrived = 0;
  live_ = threads;
  at_barrier_ = 0;
  at_grid_barrier_ = 0;
  mark_ = nullptr;
  failure_.clear();
  index_ = index;
  thread_ = &thread;
  shared_.assign(shared_bytes / sizeof(std::uint64_t) + 2, ~std::uint64_t{0});  // NaN in float and double
  order_.resize(threads);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (machine.schedule == Schedule::kBackward) std::reverse(order_.begin(), order_.end());
}

bool Block::advance() {
  if (machine.schedule == Schedule::kRandom) shuffle(order_);
  warp_ = 0;
  place_ = 0;
  any_ = false;
  now = this;
  block_index = index_;
  go_on(scheduler_);
  if (!failure_.empty()) throw std::logic_error(failure_);
  return any_;
}

void Block::shuffle(std::span<std::size_t> order) {
  for (std::size_t i = order.size(); i > 1; --i) {
    coins_ = coins_ * 6364136223846793005U + 1442695040888963407U;
    std::swap(order[i - 1], order[(coins_ >> 33) % i]);
  }
}

/// Goes through each warp until none of its threads is ready.
bool Block::choose_next() {
  while (warp_ < order_.size()) {
    while (place_ < warp_ + kWarp) {
      running_ = order_[place_++];
      if (threads_[running_].state == Thread::State::kReady) return any_of_warp_ = any_ = true;
    }
    if (!std::exchange(any_of_warp_, false)) warp_ += kWarp;
    place_ = warp_;
  }
  return false;
}

/// The one that was used last.
Fiber* Block::take_fiber() {
  if (free_.empty()) free_.push_back(fibers_.emplace_back(std::make_unique<Fiber>()).get());
  Fiber* fiber = free_.back();
  free_.pop_back();
  if (fiber->started) return fiber;
  if (fiber->stack == nullptr) fiber->stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  // Stacks whose ends share the low bits of their addresses would share few lines of the cache.
  fiber->context.uc_stack.ss_size = kStackBytes - fibers_.size() % kWarp * 128;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, &Block::enter, 0);
  return fiber;
}

/// Runs the next thread, or the scheduler if there is none; returns when it is the turn of `from`.
void Block::go_on(Fiber& from) {
  Fiber* to = &scheduler_;
  if (failure_.empty() && choose_next()) {
    Thread& thread = threads_[running_];
    if (thread.fiber == nullptr) thread.fiber = take_fiber();
    to = thread.fiber;
    thread_index = thread.index;
  }
  if (to != &from) jump(from, *to);
}

void Block::jump(Fiber& from, Fiber& to) {
  const bool started = std::exchange(to.started, true);
  if (!kJumps) {
    swapcontext(&from.context, &to.context);
  } else if (__builtin_setjmp(from.place) == 0) {
    if (started) __builtin_longjmp(to.place, 1);
    setcontext(&to.context);
    std::abort();  // only reached if setcontext() fails
  }
}

void Block::finish() {
  Thread& thread = threads_[running_];
  thread.state = Thread::State::kDone;
  --live_;
  if (live_ > 0 && at_barrier_ == live_) release_barrier();
  free_.push_back(thread.fiber);
  go_on(*thread.fiber);
}

void Block::fail(std::string message) {
  failure_ = std::move(message);
  yield();
}

void Block::release_barrier() {
  for (Thread& thread : threads_) {
    if (thread.state == Thread::State::kAtBarrier) thread.state = Thread::State::kReady;
  }
  at_barrier_ = 0;
}

void Block::barrier() {
  threads_[running_].state = Thread::State::kAtBarrier;
  if (++at_barrier_ == live_) release_barrier();
  yield();
}

void Block::grid_barrier(const void* mark, std::size_t blocks) {
  if (!together) fail("A grid whose blocks do not run together waits for all of its blocks.");
  threads_[running_].state = Thread::State::kAtGridBarrier;
  mark_ = mark;
  meeting_ = mark == nullptr ? 0 : blocks;
  ++at_grid_barrier_;
  yield();
}

void Block::pass_grid_barrier() {
  at_grid_barrier_ = 0;
  for (Thread& thread : threads_) thread.state = Thread::State::kReady;
}

const std::array<LaneWords, kWarp>& Block::exchange(std::uint32_t mask, const LaneWords& own) {
  const std::size_t number = running_ / kWarp;
  Warp& warp = warps_[number];
  const std::uint32_t bit = std::uint32_t{1} << lane();
  if ((mask & bit) == 0 || (warp.arrived != 0 && warp.mask != mask)) {
    fail("Lanes of a warp synchronise with different masks.");
  }
  warp.mask = mask;
  warp.arrived |= bit;
  const std::array<LaneWords, kWarp>& shown = warp.shown[warp.turn];
  warp.shown[warp.turn][lane()] = own;
  if (warp.arrived != mask) {
    threads_[running_].state = Thread::State::kInExchange;
    yield();
    return shown;
  }
  warp.turn = 1 - warp.turn;
  warp.arrived = 0;
  for (std::size_t i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1U) != 0) threads_[number * kWarp + i].state = Thread::State::kReady;
  }
  return shown;
}

/// Checks the sizes against those of GPUs and begins a grid of them; returns the number of blocks and of a
/// block's threads.
std::pair<std::size_t, std::size_t> begin_grid(Extent grid, Extent extent, std::size_t shared_bytes,
                                               bool blocks_together) {
  const std::size_t threads = std::size_t{extent.x} * extent.y * extent.z;
  if (threads == 0 || threads > kMostThreads || threads % kWarp != 0) {
    throw std::logic_error("A block has " + std::to_string(threads) +
                           " threads; it must have 32 to 1024, in multiples of 32.");
  }
  const std::size_t count = std::size_t{grid.x} * grid.y * grid.z;
  if (count == 0) throw std::logic_error("A grid has no blocks.");
  if (grid.x > kMostBlocks || grid.y > kMostBlocksAcross || grid.z > kMostBlocksAcross)
    throw std::logic_error("A grid has more blocks than a GPU supports.");
  if (shared_bytes > machine.card.shared_bytes)
    throw std::logic_error(std::to_string(shared_bytes) +
                           " bytes of shared memory are more than a GPU has.");
  grid_extent = grid;
  block_extent = extent;
  together = blocks_together;
  return {count, threads};
}

Block& member_of_team(std::size_t number) {
  while (team.size() <= number) team.push_back(std::make_unique<Block>());
  return *team[number];
}

Extent index_of_block(std::size_t number, Extent grid) {
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
          static_cast<unsigned>(number / grid.x / grid.y)};
}

/// The order of blocks.
std::vector<std::size_t> ordered(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (machine.schedule == Schedule::kBackward) std::reverse(order.begin(), order.end());
  if (machine.schedule == Schedule::kRandom) member_of_team(0).shuffle(order);
  return order;
}

}  // namespace

void run_grid(Extent grid, Extent extent, std::size_t shared_bytes, const std::function<void()>& thread) {
  const auto [count, threads] = begin_grid(grid, extent, shared_bytes, false);
  Block& block = member_of_team(0);
  for (const std::size_t number : ordered(count)) {
    block.begin(index_of_block(number, grid), threads, shared_bytes, thread);
    while (!block.ended()) {
      if (!block.advance())
        throw std::logic_error("Deadlock: threads of a block wait for threads that never arrive.");
    }
    ++counts.blocks_run;
  }
}

void run_grid_together(Extent grid, Extent extent, std::size_t shared_bytes,
                       const std::function<void()>& thread) {
  const auto [count, threads] = begin_grid(grid, extent, shared_bytes, true);
  if (count > machine.blocks_at_once)
    throw std::logic_error("A cooperative grid has more blocks than the device runs at once.");
  for (std::size_t number = 0; number < count; ++number)
    member_of_team(number).begin(index_of_block(number, grid), threads, shared_bytes, thread);
  const auto first = team.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  while (!std::all_of(first, last, [](const auto& block) { return block->ended(); })) {
    bool any = false;
    for (const std::size_t number : ordered(count)) {
      while (team[number]->advance()) {
        any = true;
        if (machine.schedule == Schedule::kRandom) break;  // lets the blocks take turns
      }
    }
    if (any) continue;
    std::map<const void*, std::size_t> waiting;  // blocks by their mark
    for (auto block = first; block != last; ++block) {
      if ((*block)->is_at_grid_barrier()) ++waiting[(*block)->mark()];
    }
    for (auto block = first; block != last; ++block) {
      const std::size_t meeting = (*block)->meeting() == 0 ? count : (*block)->meeting();
      if (!(*block)->is_at_grid_barrier() || waiting[(*block)->mark()] != meeting) continue;
      (*block)->pass_grid_barrier();
      any = true;
    }
    if (!any) throw std::logic_error("Deadlock: blocks of a grid wait for threads that never arrive.");
  }
  counts.blocks_run += static_cast<std::int64_t>(count);
}

std::int64_t Card::blocks_at_once(std::size_t registers, std::size_t threads_of_block,
                                  std::size_t shared_bytes_of_block) const {
  constexpr std::size_t kRegisters = 65'536;
  constexpr std::size_t kUnit = 8;           // of a thread's registers
  constexpr std::size_t kTakenByAny = 1024;  // shared memory of a block, of which it sees nothing
  if (shared_bytes_of_block > shared_bytes) return 0;
  const std::size_t of_thread = (registers + kUnit - 1) / kUnit * kUnit;
  const std::size_t blocks =
      std::min({kRegisters / (of_thread * threads_of_block), threads / threads_of_block,
                (shared_bytes + kTakenByAny) / (shared_bytes_of_block + kTakenByAny)});
  return multiprocessors * static_cast<std::int64_t>(blocks);
}

void* shared_memory() {
  return now->shared();
}

void block_barrier() {
  now->barrier();
}

void grid_barrier(const void* mark, std::size_t blocks) {
  now->grid_barrier(mark, blocks);
}

int lane() {
  return now->lane();
}

const std::array<LaneWords, kWarp>& exchange(std::uint32_t mask, const LaneWords& own) {
  return now->exchange(mask, own);
}

void copy_later(void* to, const void* from, std::size_t bytes) {
  for (const void* address : {static_cast<const void*>(to), from}) {
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
      now->fail("A copy to shared memory is not aligned.");
  }
  now->copies().open_group.push_back({to, from, bytes});
}

void end_copy_group() {
  Copies& copies = now->copies();
  copies.groups.push_back(std::move(copies.open_group));
  copies.open_group.clear();
}

void wait_for_copy_groups(int pending) {
  Copies& copies = now->copies();
  while (std::ssize(copies.groups) > pending) {
    for (const PendingCopy& copy : copies.groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
    copies.groups.pop_front();
  }
}

}  // namespace olrank::emulation
