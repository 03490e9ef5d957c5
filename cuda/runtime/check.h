#pragma once

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <string_view>

namespace olrank::cuda {

/// Throws a CudaError with the call and CUDA's description if the call failed.
void check(cudaError_t status, std::string_view call);

/// Throws the CudaError of a kernel that did not start, with its name and sizes.
[[noreturn]] void throw_launch_error(cudaError_t status, const void* kernel, dim3 grid, dim3 block,
                                     std::size_t shared_bytes);

}  // namespace olrank::cuda

#define OLRANK_CUDA_CHECK(call) ::olrank::cuda::check((call), #call)
