#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/runtime/check.h"
#include "cuda/runtime/stream.h"

// How grids start, and the parts of CUDA that kernels use. The tests have a twin of this file for the CPU,
// so that kernels use only what both provide.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Reads an attribute of the calling thread's device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  OLRANK_CUDA_CHECK(cudaGetDevice(&device));
  OLRANK_CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

/// How much shared memory a block of the calling thread's device can have.
inline std::size_t most_shared_bytes() {
  return static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

/// Lets a kernel use as much shared memory as a block of this device can have. The limit is per kernel and
/// device, so that every thread sets the same value.
inline cudaError_t allow_shared_memory(const void* kernel, std::size_t bytes) {
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  if (bytes <= kWithoutAsking) return cudaSuccess;
  const std::size_t most = most_shared_bytes();
  if (bytes > most) return cudaErrorInvalidValue;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most));
}

/// Whether the argument of a kernel may have addresses of pinned memory, which are the device's, too.
template <class Argument>
inline constexpr bool reaches_host = false;

/// Starts a kernel, whose blocks run all at once if they do so `together`: at most blocks_at_once(). Throws
/// CudaError with the kernel's name and its sizes.
template <class Argument>
void start_grid(void (*kernel)(Argument), dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
                const Argument& argument, bool together) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  cudaError_t status = allow_shared_memory(function, shared_bytes);
  if (status == cudaSuccess && together) {
    void* places[] = {const_cast<Argument*>(&argument)};
    status = cudaLaunchCooperativeKernel(function, grid, block, places, shared_bytes, stream);
  } else if (status == cudaSuccess) {
    kernel<<<grid, block, shared_bytes, stream>>>(argument);
    status = cudaGetLastError();
  }
  if (status != cudaSuccess) throw_launch_error(status, function, grid, block, shared_bytes);
}

/// How many blocks of this kernel the calling thread's device runs at once, where they may wait for each
/// other; 0 if a block needs more shared memory than there is, or the device has no such launches.
template <class Argument>
std::int64_t blocks_at_once(void (*kernel)(Argument), dim3 block, std::size_t shared_bytes) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (device_attribute(cudaDevAttrCooperativeLaunch) == 0 || shared_bytes > most_shared_bytes()) return 0;
  int blocks = 0;
  OLRANK_CUDA_CHECK(allow_shared_memory(function, shared_bytes));
  OLRANK_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, function, static_cast<int>(block.x * block.y * block.z), shared_bytes));
  return std::int64_t{blocks} * device_attribute(cudaDevAttrMultiProcessorCount);
}

/// Waits for every thread of the launch, or of the `blocks` that count in `arrived`, which was 0 before the
/// launch; each then sees what the others wrote.
__device__ inline void grid_barrier(unsigned* arrived, unsigned blocks) {
  if (arrived == nullptr) return cooperative_groups::this_grid().sync();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned turn = atomicAdd(arrived, 1U) / blocks;
    while (*static_cast<volatile unsigned*>(arrived) / blocks == turn) {
    }
    __threadfence();
  }
  __syncthreads();
}

/// The block's shared memory.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ double2 memory[];
  return reinterpret_cast<T*>(memory);
}

/// Starts copying one number, or four aligned ones, to shared memory; commit_copies() closes a group of
/// copies, and wait_for_copies() waits until at most `pending` of the thread's groups are unfinished.
template <int count>
__device__ inline void copy_async(float* shared, const float* global) {
  __pipeline_memcpy_async(shared, global, count * sizeof(float));
}
__device__ inline void commit_copies() {
  __pipeline_commit();
}
template <int pending>
__device__ inline void wait_for_copies() {
  __pipeline_wait_prior(pending);
}

/// C [16 × 8] += A [16 × 16] B [16 × 8] by one warp, on tensor cores. With g = lane / 4, t = lane % 4 and
/// k = t + 4i lane holds A(g, k) in a[2i], A(g + 8, k) in a[2i + 1] and B(k, g) in b[i], and of C (g, 2t),
/// (g, 2t + 1), (g + 8, 2t) and (g + 8, 2t + 1).
__device__ inline void multiply_add_16x8x16(const double (&a)[8], const double (&b)[4], double (&c)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
        "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
          : "d"(a[2 * i + half]), "d"(b[i]));
    }
  }
#endif
}

/// C [16 × 8] += A [16 × 8] B [8 × 8] by one warp, on tensor cores, of float32 numbers that are sums of two
/// TF32 numbers, the larger ones in a[0] and b[0]. Lanes hold C as above, A(g, t), A(g + 8, t), A(g, t + 4)
/// and A(g + 8, t + 4), and B(t, g) and B(t + 4, g).
__device__ inline void multiply_add_16x8x8(const float (&a)[2][4], const float (&b)[2][2], float (&c)[4]) {
  float part[4] = {};
  const auto multiply = [&](const float(&left)[4], const float(&right)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(part[0]), "+f"(part[1]), "+f"(part[2]), "+f"(part[3])
        : "r"(__float_as_uint(left[0])), "r"(__float_as_uint(left[1])), "r"(__float_as_uint(left[2])),
          "r"(__float_as_uint(left[3])), "r"(__float_as_uint(right[0])), "r"(__float_as_uint(right[1])));
  };
  multiply(a[1], b[0]);
  multiply(a[0], b[1]);
  multiply(a[0], b[0]);
#pragma unroll
  for (int e = 0; e < 4; ++e) c[e] += part[e];
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
