#pragma once

#include <cstdint>

#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

constexpr std::uint32_t kWholeWarp = 0xFFFFFFFFU;

/// The sum over the lanes of a warp, returned to all of them, in a fixed order.
template <class T>
__device__ inline T warp_sum(T value) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(kWholeWarp, value, bits);
  return value;
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// The value of all of a block's threads, in a fixed order, for each of them. `shared` holds one number per
/// warp and is free again after it.
template <class T, class Combine>
__device__ inline T combined(T value, T* shared, const Combine& combine) {
  for (int bits = 16; bits > 0; bits /= 2) value = combine(value, __shfl_xor_sync(kWholeWarp, value, bits));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) value = combine(value, shared[warp]);
  __syncthreads();
  return value;
}

/// The sum over a block's threads, returned to thread 0 only; `shared` holds one number per warp.
template <class T>
__device__ inline T block_sum(T value, T* shared) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T sum{};
  if (threadIdx.x == 0) {
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += shared[warp];
  }
  return sum;
}

/// sums [rows × numbers] = Σ partial [rows × parts × numbers], part by part: a thread owns a number. Rows
/// of the sums are `stride` numbers apart. Does nothing if `skip` points to a number other than 0.
static __device__ void add_parts_kernel(const Grid& grid, std::int64_t numbers, std::int64_t parts,
                                        const double* partial, double* sums, const std::int32_t* skip,
                                        std::int64_t stride) {
  if (skip != nullptr && *skip != 0) return;
  const std::int64_t i = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (i >= numbers) return;
  partial += std::int64_t{grid.block.y} * parts * numbers;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t part = 0; part < parts; ++part) sum += partial[part * numbers + i];
  sums[std::int64_t{grid.block.y} * stride + i] = sum;
}

static inline void add_parts(Stream stream, std::int64_t numbers, std::int64_t rows, std::int64_t parts,
                             const double* partial, double* sums, const std::int32_t* skip = nullptr,
                             std::int64_t stride = 0) {
  launch_each(kernel<add_parts_kernel, 256>, numbers, rows, stream, numbers, parts, partial, sums, skip,
              stride == 0 ? numbers : stride);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
