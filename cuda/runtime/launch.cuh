#pragma once

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/runtime/check.h"
#include "cuda/runtime/stream.h"

// How kernels are started, and what they need beyond the language. The tests have a twin of this file for
// the CPU: kernels use nothing of CUDA but what both have.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Starts a kernel; shared memory is dynamic_shared(). Blocks are whole warps, and an empty grid is the
/// caller's early return. Throws CudaError with the kernel's name and its sizes.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
            const Arguments&... arguments) {
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  cudaError_t status = cudaSuccess;
  if (shared_bytes > kWithoutAsking) {
    // The limit belongs to the kernel on this device, so that every thread sets the same one.
    int device = 0;
    int most = 0;
    status = cudaGetDevice(&device);
    if (status == cudaSuccess)
      status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (status == cudaSuccess) {
      status = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    }
  }
  if (status == cudaSuccess) {
    kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
    status = cudaGetLastError();
  }
  if (status != cudaSuccess) {
    throw_launch_error(status, reinterpret_cast<const void*>(kernel), grid, block, shared_bytes);
  }
}

/// The block's shared memory.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ double2 memory[];
  return reinterpret_cast<T*>(memory);
}

/// Begins to copy one number to shared memory; commit_copies() closes a group of copies, and
/// wait_for_copies() waits until at most `pending` of the thread's groups are on their way.
__device__ inline void copy_async(float* shared, const float* global) {
  __pipeline_memcpy_async(shared, global, sizeof(float));
}
__device__ inline void commit_copies() {
  __pipeline_commit();
}
template <int pending>
__device__ inline void wait_for_copies() {
  __pipeline_wait_prior(pending);
}

/// C [8 × 8] += A [8 × 4] B [4 × 8] by one warp, on tensor cores. Lane i holds A(i/4, i%4), B(i%4, i/4) and
/// C(i/4, 2(i%4)), C(i/4, 2(i%4) + 1).
__device__ inline void multiply_add_8x8x4(double a, double b, double& c0, double& c1) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c0), "+d"(c1)
      : "d"(a), "d"(b));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
