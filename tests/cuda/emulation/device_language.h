#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/cuda/emulation/emulator.h"

// The parts of CUDA's language that kernels use, for a C++ compiler.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)

using std::max;
using std::min;

using dim3 = olrank::emulation::Extent;

inline const dim3& threadIdx = olrank::emulation::thread_index;
inline const dim3& blockIdx = olrank::emulation::block_index;
inline const dim3& blockDim = olrank::emulation::block_extent;
inline const dim3& gridDim = olrank::emulation::grid_extent;

inline void __syncthreads() {
  olrank::emulation::block_barrier();
}

inline void __syncwarp(std::uint32_t mask = 0xFFFFFFFFU) {
  olrank::emulation::exchange(mask, {});
}

template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int bits) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  olrank::emulation::LaneWords own;
  std::memcpy(own.word.data(), &value, sizeof(T));
  const auto& other = olrank::emulation::exchange(mask, own)[olrank::emulation::lane() ^ bits];
  std::memcpy(&value, other.word.data(), sizeof(T));
  return value;
}

inline std::uint32_t __ballot_sync(std::uint32_t mask, bool vote) {
  const auto& votes = olrank::emulation::exchange(mask, {{vote ? 1U : 0U, 0}});
  std::uint32_t ballot = 0;
  for (unsigned lane = 0; lane < olrank::emulation::kWarp; ++lane) {
    if ((mask >> lane & 1U) != 0 && votes[lane].word[0] != 0) ballot |= 1U << lane;
  }
  return ballot;
}

inline int __popc(std::uint32_t bits) {
  return std::popcount(bits);
}

// Threads switch only where they wait, so plain operations are atomic.
template <class T>
T atomicAdd(T* place, T value) {
  const T old = *place;
  *place = old + value;
  return old;
}

template <class T>
T atomicMin(T* place, T value) {
  const T old = *place;
  *place = std::min(old, value);
  return old;
}
