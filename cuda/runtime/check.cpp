#include "cuda/runtime/check.h"

#include <fmt/format.h>

#include <string>

#include "core/error.h"

namespace olrank::cuda {
namespace {

/// The calling thread's GPU, which a failed selection does not concern.
std::string gpu_of(std::string_view call) {
  int device = 0;
  if (call.starts_with("cudaSetDevice") || cudaGetDevice(&device) != cudaSuccess) return "";
  return fmt::format(" on cuda:{}", device);
}

}  // namespace

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // reported here, so that no later check reports it again
  if (status == cudaErrorMemoryAllocation) {
    throw OutOfDeviceMemory(fmt::format(
        "{} failed{}: the GPU's memory is full. Use fewer --jobs, the diagonal covariance or fewer rounds.",
        call, gpu_of(call)));
  }
  throw CudaError(fmt::format("{} failed{}: {} ({}).", call, gpu_of(call), cudaGetErrorString(status),
                              cudaGetErrorName(status)));
}

void throw_launch_error(cudaError_t status, const void* kernel, dim3 grid, dim3 block,
                        std::size_t shared_bytes) {
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) != cudaSuccess) name = "a kernel";
  cudaGetLastError();  // reported here, so that no later check reports it again
  throw CudaError(fmt::format(
      "Starting {} with {} × {} × {} blocks of {} threads and {} bytes of shared memory failed: {} ({}).",
      name, grid.x, grid.y, grid.z, block.x * block.y * block.z, shared_bytes, cudaGetErrorString(status),
      cudaGetErrorName(status)));
}

}  // namespace olrank::cuda
