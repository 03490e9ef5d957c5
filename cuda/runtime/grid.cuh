#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

#include "cuda/runtime/batch.h"
#include "cuda/runtime/launch.cuh"
#include "cuda/runtime/stream.h"

// How kernels start. A kernel is a function of its place in a grid and of its parameters; several trials
// that start it at once share one launch, in which each has a grid of its own. Its blocks see the same as
// in a launch of their own, so that a trial's bits do not depend on who shares its launches.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

constexpr unsigned kThreads = 256;  // of a block, where nothing asks for another number

/// The place of a block in the grid of its trial.
struct Grid {
  dim3 block;                   // the block's index
  dim3 extent;                  // blocks of the grid
  unsigned* arrived = nullptr;  // at barriers, blocks of this grid; null where the launch has no other one

  /// Waits for every thread of the grid, which then sees what the others wrote.
  __device__ void barrier() const { grid_barrier(arrived, extent.x * extent.y * extent.z); }
};

/// The arguments of a kernel, in the order of its parameters.
template <class First, class... Rest>
struct Values {
  First first;
  Values<Rest...> rest;
};
template <class Last>
struct Values<Last> {
  Last first;
};

template <class First, class... Rest, class Argument, class... Arguments>
Values<First, Rest...> values_of(const Argument& argument, const Arguments&... arguments) {
  if constexpr (sizeof...(Rest) == 0) {
    return {static_cast<First>(argument)};
  } else {
    return {static_cast<First>(argument), values_of<Rest...>(arguments...)};
  }
}

/// Calls body(passed…, values…).
template <auto body, class First, class... Rest, class... Passed>
__device__ void call_with(const Values<First, Rest...>& values, const Passed&... passed) {
  if constexpr (sizeof...(Rest) == 0) {
    body(passed..., values.first);
  } else {
    call_with<body>(values.rest, passed..., values.first);
  }
}

/// The arguments of one launch for several grids, within what a launch can carry.
template <class Arguments>
struct SharedLaunch {
  static constexpr std::size_t kMostBytes = 30'000;
  static constexpr std::size_t kMostGrids = std::min<std::size_t>(16, kMostBytes / sizeof(Arguments));

  unsigned* arrived = nullptr;     // [kMostGrids × kArrivedStride]
  unsigned ends[kMostGrids] = {};  // the blocks of each grid and of those before it
  dim3 extents[kMostGrids] = {};
  alignas(Arguments) unsigned char values[kMostGrids * sizeof(Arguments)] = {};

  static_assert(std::is_trivially_copyable_v<Arguments>);
  void set(std::size_t number, const Arguments& arguments) {
    std::memcpy(values + number * sizeof(Arguments), &arguments, sizeof(Arguments));
  }
  __device__ const Arguments& of(unsigned number) const {
    return reinterpret_cast<const Arguments*>(values)[number];
  }
};

template <auto body, unsigned threads, unsigned blocks, class Arguments>
__global__ void __launch_bounds__(threads, blocks) own_launch(const __grid_constant__ Arguments values) {
  const Grid grid{{blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}};
  call_with<body>(values, grid);
}

template <auto body, unsigned threads, unsigned blocks, class Arguments>
__global__ void __launch_bounds__(threads, blocks)
    shared_launch(const __grid_constant__ SharedLaunch<Arguments> launch) {
  unsigned number = 0;
  while (blockIdx.x >= launch.ends[number]) ++number;
  const unsigned block = blockIdx.x - (number == 0 ? 0 : launch.ends[number - 1]);
  const dim3 extent = launch.extents[number];
  const Grid grid{{block % extent.x, block / extent.x % extent.y, block / extent.x / extent.y},
                  extent,
                  launch.arrived + number * kArrivedStride};
  call_with<body>(launch.of(number), grid);
}

/// A kernel with parameters of these types.
template <class... Parameters>
struct Kernel {
  using Arguments = Values<Parameters...>;

  void (*alone)(Arguments);
  void (*shared)(SharedLaunch<Arguments>);
  unsigned threads;  // of a block, whole warps
};

/// The blocks of a grid.
struct Blocks {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
};

template <auto body, unsigned threads, unsigned blocks, class... Parameters>
constexpr auto kernel_of(void (* /*body*/)(const Grid&, Parameters...)) {
  using Made = Kernel<std::remove_cvref_t<Parameters>...>;
  return Made{&own_launch<body, threads, blocks, typename Made::Arguments>,
              &shared_launch<body, threads, blocks, typename Made::Arguments>, threads};
}

/// The kernel of this function, for blocks of `threads`, of which a multiprocessor shall have room for as
/// many as `blocks`.
template <auto body, unsigned threads, unsigned blocks = 1>
inline constexpr auto kernel = kernel_of<body, threads, blocks>(body);

/// A grid that waits for its launch.
template <class... Parameters>
class QueuedGrid : public QueuedWork {
 public:
  using Arguments = Values<Parameters...>;

  QueuedGrid(const Kernel<Parameters...>& kernel, dim3 grid, std::size_t shared_bytes, bool together,
             const Arguments& values)
      : kernel_(kernel), grid_(grid), shared_bytes_(shared_bytes), together_(together), values_(values) {}

  Key key() const override { return reinterpret_cast<const void*>(kernel_.shared); }
  void start(Stream stream) override {
    start_grid(kernel_.alone, grid_, dim3{kernel_.threads}, shared_bytes_, stream, values_, together_);
  }
  std::size_t start_with(std::span<QueuedWork* const> others, Stream stream, unsigned* arrived) override {
    using Launch = SharedLaunch<Arguments>;
    const std::size_t count = std::min(others.size(), Launch::kMostGrids);
    std::size_t shared_bytes = 0;
    std::int64_t blocks = 0;
    for (const QueuedWork* other : others.first(count)) {
      shared_bytes = std::max(shared_bytes, of(other).shared_bytes_);
      blocks += of(other).blocks();
    }
    const std::int64_t room =
        together_ ? blocks_at_once(kernel_.shared, dim3{kernel_.threads}, shared_bytes) : blocks;
    if (room < static_cast<std::int64_t>(count)) {  // too few for a block of each
      start(stream);
      return 1;
    }
    Launch launch;
    launch.arrived = arrived;
    unsigned end = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const QueuedGrid& other = of(others[i]);
      launch.extents[i] = other.grid_;
      // A grid whose blocks wait for each other takes its share of those that run at once.
      if (room < blocks)
        launch.extents[i] = dim3{static_cast<unsigned>(std::max<std::int64_t>(
            1, other.blocks() * (room - static_cast<std::int64_t>(count)) / blocks))};
      end += launch.extents[i].x * launch.extents[i].y * launch.extents[i].z;
      launch.ends[i] = end;
      launch.set(i, other.values_);
    }
    start_grid(kernel_.shared, dim3{end}, dim3{kernel_.threads}, shared_bytes, stream, launch, together_);
    return count;
  }
  bool meets() const override { return together_; }

 private:
  static const QueuedGrid& of(const QueuedWork* work) { return *static_cast<const QueuedGrid*>(work); }
  std::int64_t blocks() const { return std::int64_t{grid_.x} * grid_.y * grid_.z; }

  Kernel<Parameters...> kernel_;
  dim3 grid_;
  std::size_t shared_bytes_;
  bool together_;
  Arguments values_;
};

template <class... Parameters, class... Arguments>
void launch_grid(bool together, const Kernel<Parameters...>& kernel, const Blocks& blocks,
                 std::size_t shared_bytes, Stream stream, const Arguments&... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  const dim3 grid{count_of(blocks.x), count_of(blocks.y), count_of(blocks.z)};
  const Values<Parameters...> values = values_of<Parameters...>(arguments...);
  if (Seat* seat = Seat::of_thread()) {
    seat->add(std::make_unique<QueuedGrid<Parameters...>>(kernel, grid, shared_bytes, together, values));
  } else {
    start_grid(kernel.alone, grid, dim3{kernel.threads}, shared_bytes, stream, values, together);
  }
}

/// Starts a kernel, unless its grid is empty; shared memory is dynamic_shared(). Throws CudaError with the
/// kernel's name and its sizes.
template <class... Parameters, class... Arguments>
void launch(const Kernel<Parameters...>& kernel, const Blocks& blocks, std::size_t shared_bytes,
            Stream stream, const Arguments&... arguments) {
  launch_grid(false, kernel, blocks, shared_bytes, stream, arguments...);
}

/// Starts a kernel whose blocks all run at once and meet at barriers of their grid: at most
/// blocks_at_once(). Beside the grids of others it has fewer of them, in a row.
template <class... Parameters, class... Arguments>
void launch_together(const Kernel<Parameters...>& kernel, const Blocks& blocks, std::size_t shared_bytes,
                     Stream stream, const Arguments&... arguments) {
  launch_grid(true, kernel, blocks, shared_bytes, stream, arguments...);
}

/// Starts a kernel whose threads own a number each: of `numbers` in every row of the grid, block.y.
template <class... Parameters, class... Arguments>
void launch_each(const Kernel<Parameters...>& kernel, std::int64_t numbers, std::int64_t rows,
                 Stream stream, const Arguments&... arguments) {
  launch(kernel, {parts_of(numbers, kernel.threads), rows}, 0, stream, arguments...);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
