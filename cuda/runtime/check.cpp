#include "cuda/runtime/check.h"

#include <fmt/format.h>

#include "core/error.h"

namespace olrank::cuda {

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  throw CudaError(
      fmt::format("{} failed: {} ({}).", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

}  // namespace olrank::cuda
