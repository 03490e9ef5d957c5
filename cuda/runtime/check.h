#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace olrank::cuda {

/// Turns a failed call into a CudaError that names the call and what CUDA said about it.
void check(cudaError_t status, std::string_view call);

}  // namespace olrank::cuda

#define OLRANK_CUDA_CHECK(call) ::olrank::cuda::check((call), #call)
