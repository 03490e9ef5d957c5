#pragma once

#include <cstdint>

#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

constexpr std::uint32_t kWholeWarp = 0xFFFFFFFFU;

/// The sum over the lanes of a warp, returned to all of them, in a fixed order.
template <class T>
__device__ inline T warp_sum(T value) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(kWholeWarp, value, bits);
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

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
