#pragma once

#include <cstdint>

#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/work.h"

// Sorts items by group, keeping their order within a group: a counting sort whose result does not depend on
// the order of threads.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

constexpr unsigned kGroupThreads = 256;
constexpr unsigned kScanThreads = 1024;

// Counts the items of each group. Integers, so that the order of atomic additions does not matter.
template <class GroupOf>
__device__ void count_items_kernel(const Grid& grid, const GroupOf& group_of, std::int64_t count,
                                   std::int32_t* counts) {
  const std::int64_t item = std::int64_t{grid.block.x} * kGroupThreads + threadIdx.x;
  if (item >= count) return;
  const std::int32_t group = group_of(item);
  if (group >= 0) atomicAdd(counts + group, 1);
}

/// Calls body(group, count) for the groups from begin to end. Counts are read eight at a time: the reads
/// then wait for memory together.
template <class Body>
__device__ void for_each_count(std::int64_t begin, std::int64_t end, const std::int32_t* counts,
                               const Body& body) {
  constexpr int kTogether = 8;
  for (std::int64_t first = begin; first < end; first += kTogether) {
    std::int32_t read[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) read[i] = first + i < end ? counts[first + i] : 0;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + i < end) body(first + i, read[i]);
    }
  }
}

// offsets [groups + 1], the running sum of counts, which are reset to 0. One block: each thread sums a run
// of groups, then all threads' sums are summed in shared memory.
static __device__ void scan_counts_kernel(const Grid& /*grid*/, std::int64_t groups, std::int32_t* counts,
                                          std::int32_t* offsets) {
  auto* sums = dynamic_shared<std::int32_t>();
  const std::int64_t run = (groups + kScanThreads - 1) / kScanThreads;
  const std::int64_t begin = min(groups, run * threadIdx.x);
  const std::int64_t end = min(groups, begin + run);
  std::int32_t own = 0;
  for_each_count(begin, end, counts, [&](std::int64_t, std::int32_t count) { own += count; });
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned step = 1; step < kScanThreads; step *= 2) {
    const std::int32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  std::int32_t sum = sums[threadIdx.x] - own;
  for_each_count(begin, end, counts, [&](std::int64_t group, std::int32_t count) {
    offsets[group] = sum;
    sum += count;
    counts[group] = 0;
  });
  if (threadIdx.x == kScanThreads - 1) offsets[groups] = sums[threadIdx.x];
}

// Each group's items, in arbitrary order.
template <class GroupOf>
__device__ void place_items_kernel(const Grid& grid, const GroupOf& group_of, std::int64_t count,
                                   const std::int32_t* offsets, std::int32_t* placed,
                                   std::int32_t* unordered) {
  const std::int64_t item = std::int64_t{grid.block.x} * kGroupThreads + threadIdx.x;
  if (item >= count) return;
  const std::int32_t group = group_of(item);
  if (group >= 0)
    unordered[offsets[group] + atomicAdd(placed + group, 1)] = static_cast<std::int32_t>(item);
}

// A warp owns a group: an item's place is the number of smaller items.
static __device__ void order_items_kernel(const Grid& grid, std::int64_t groups,
                                          const std::int32_t* offsets, const std::int32_t* unordered,
                                          std::int32_t* items) {
  const std::int64_t group = std::int64_t{grid.block.x} * (kGroupThreads / 32) + threadIdx.x / 32;
  if (group >= groups) return;
  const std::int32_t begin = offsets[group];
  const std::int32_t stop = offsets[group + 1];
  for (std::int32_t i = begin + static_cast<std::int32_t>(threadIdx.x % 32); i < stop; i += 32) {
    const std::int32_t own = unordered[i];
    std::int32_t place = begin;
    for (std::int32_t j = begin; j < stop; ++j) place += unordered[j] < own ? 1 : 0;
    items[place] = own;
  }
}

/// offsets [groups + 1] and items [count] of groups: group_of(item) is below `groups`, or −1 for an item
/// without a group. `workspace` holds groups + count words.
template <class GroupOf>
void group_stably(Stream stream, const GroupOf& group_of, std::int64_t count, std::int64_t groups,
                  std::int32_t* workspace, std::int32_t* offsets, std::int32_t* items) {
  std::int32_t* counts = workspace;
  std::int32_t* unordered = workspace + groups;
  fill_bytes(stream, counts, 0, static_cast<std::size_t>(groups) * sizeof(std::int32_t));
  launch_each(kernel<count_items_kernel<GroupOf>, kGroupThreads>, count, 1, stream, group_of, count,
              counts);
  launch(kernel<scan_counts_kernel, kScanThreads>, {1}, kScanThreads * sizeof(std::int32_t), stream, groups,
         counts, offsets);
  launch_each(kernel<place_items_kernel<GroupOf>, kGroupThreads>, count, 1, stream, group_of, count,
              offsets, counts, unordered);
  if (count > 0)
    launch_each(kernel<order_items_kernel, kGroupThreads>, 32 * groups, 1, stream, groups, offsets,
                unordered, items);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
