#include "cuda/ops/pair_incidence.h"

#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kScanThreads = 1024;

unsigned blocks_of(std::int64_t n) {
  return static_cast<unsigned>((n + kThreads - 1) / kThreads);
}

__global__ void __launch_bounds__(kThreads) zero_kernel(std::int64_t count, std::int32_t* numbers) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) numbers[i] = 0;
}

// How many terms touch each document: whole numbers, so that the order does not matter.
__global__ void __launch_bounds__(kThreads)
    count_ends_kernel(const PairTerm* terms, std::int64_t count, std::int32_t* counts) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t >= count || terms[t].first < 0) return;
  atomicAdd(counts + terms[t].first, 1);
  atomicAdd(counts + terms[t].second, 1);
}

// offsets [docs + 1], the running sum of counts, which become 0 again. One block: each thread sums a run of
// documents, then all threads' sums are summed in shared memory.
__global__ void __launch_bounds__(kScanThreads)
    scan_counts_kernel(std::int64_t docs, std::int32_t* counts, std::int32_t* offsets) {
  auto* sums = dynamic_shared<std::int32_t>();
  const std::int64_t run = (docs + kScanThreads - 1) / kScanThreads;
  const std::int64_t begin = min(docs, run * threadIdx.x);
  const std::int64_t end = min(docs, begin + run);
  std::int32_t own = 0;
  for (std::int64_t doc = begin; doc < end; ++doc) own += counts[doc];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned step = 1; step < kScanThreads; step *= 2) {
    const std::int32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  std::int32_t sum = sums[threadIdx.x] - own;
  for (std::int64_t doc = begin; doc < end; ++doc) {
    offsets[doc] = sum;
    sum += counts[doc];
    counts[doc] = 0;
  }
  if (threadIdx.x == kScanThreads - 1) offsets[docs] = sums[threadIdx.x];
}

// Each document's ends, in the order in which threads happen to come.
__global__ void __launch_bounds__(kThreads)
    place_ends_kernel(const PairTerm* terms, std::int64_t count, const std::int32_t* offsets,
                      std::int32_t* placed, std::int32_t* unordered) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t >= count || terms[t].first < 0) return;
  const auto end = static_cast<std::int32_t>(2 * t);
  const std::int32_t first = terms[t].first;
  const std::int32_t second = terms[t].second;
  unordered[offsets[first] + atomicAdd(placed + first, 1)] = end;
  unordered[offsets[second] + atomicAdd(placed + second, 1)] = end + 1;
}

// A warp owns a document: an end's place is the number of smaller ones.
__global__ void __launch_bounds__(kThreads)
    order_ends_kernel(std::int64_t docs, const std::int32_t* offsets, const std::int32_t* unordered,
                      std::int32_t* ends) {
  const std::int64_t doc = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (doc >= docs) return;
  const std::int32_t begin = offsets[doc];
  const std::int32_t stop = offsets[doc + 1];
  for (std::int32_t i = begin + static_cast<std::int32_t>(threadIdx.x % 32); i < stop; i += 32) {
    const std::int32_t own = unordered[i];
    std::int32_t place = begin;
    for (std::int32_t j = begin; j < stop; ++j) place += unordered[j] < own ? 1 : 0;
    ends[place] = own;
  }
}

}  // namespace

std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms) {
  return docs + 2 * terms;
}

void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence) {
  std::int32_t* counts = workspace;
  std::int32_t* unordered = workspace + docs;
  if (docs > 0) launch(zero_kernel, dim3{blocks_of(docs)}, dim3{kThreads}, 0, stream, docs, counts);
  if (count > 0) {
    launch(count_ends_kernel, dim3{blocks_of(count)}, dim3{kThreads}, 0, stream, terms, count, counts);
  }
  launch(scan_counts_kernel, dim3{1}, dim3{kScanThreads}, kScanThreads * sizeof(std::int32_t), stream, docs,
         counts, incidence.offsets);
  if (count == 0) return;
  launch(place_ends_kernel, dim3{blocks_of(count)}, dim3{kThreads}, 0, stream, terms, count,
         incidence.offsets, counts, unordered);
  launch(order_ends_kernel, dim3{blocks_of(32 * docs)}, dim3{kThreads}, 0, stream, docs, incidence.offsets,
         unordered, incidence.ends);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
