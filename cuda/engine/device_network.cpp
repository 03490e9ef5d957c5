#include "cuda/engine/device_network.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/device/visible_gpus.h"
#include "core/error.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/factorisation.h"
#include "cuda/runtime/products.h"

namespace olrank {
namespace {

std::string why_none(cudaError_t status, const GpuSurvey& survey) {
  switch (status) {
    case cudaErrorInsufficientDriver:
      if (survey.driver_version == 0) return "no NVIDIA driver responds";
      return fmt::format("the driver supports CUDA {}.{}, but this build needs {}.{}: update the driver",
                         survey.driver_version / 1000, survey.driver_version % 1000 / 10,
                         survey.runtime_version / 1000, survey.runtime_version % 1000 / 10);
    case cudaSuccess:
    case cudaErrorNoDevice:
      return "the driver reports no device";
    default:
      return fmt::format("CUDA reports: {}", cudaGetErrorString(status));
  }
}

/// Whether this process has a context on the GPU, which this does not make. The function of the driver is
/// looked up, so that the program starts without one.
bool has_context(int gpu) {
  static const auto state_of = [] {
    constexpr unsigned kCuda7 = 7000;
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, kCuda7, cudaEnableDefault,
                                         &result) != cudaSuccess)
      cudaGetLastError();  // not an error, so that no later check may report it
    return reinterpret_cast<decltype(&::cuDevicePrimaryCtxGetState)>(found);
  }();
  unsigned flags = 0;
  int active = 0;
  return state_of != nullptr && state_of(gpu, &flags, &active) == CUDA_SUCCESS && active != 0;
}

}  // namespace

GpuSurvey visible_gpus() {
  GpuSurvey survey;
  survey.built_with_cuda = true;
  survey.least_capability = OLRANK_LEAST_CAPABILITY;
  survey.libraries = {cuda::product_library(), cuda::factorisation_library()};
  OLRANK_CUDA_CHECK(cudaRuntimeGetVersion(&survey.runtime_version));
  if (cudaDriverGetVersion(&survey.driver_version) != cudaSuccess) survey.driver_version = 0;

  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();  // reported here, so that no later check reports it again
    survey.absence = why_none(status, survey);
    return survey;
  }
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    OLRANK_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
    survey.gpus.push_back({.index = index,
                           .name = properties.name,
                           .capability_major = properties.major,
                           .capability_minor = properties.minor,
                           .multiprocessors = properties.multiProcessorCount,
                           .total_bytes = static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return survey;
}

std::int64_t free_bytes_of(const GpuDescription& gpu) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  try {
    OLRANK_CUDA_CHECK(cudaSetDevice(gpu.index));
    OLRANK_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  } catch (const CudaError& error) {
    throw CudaError(fmt::format("cuda:{} cannot be used now: {}", gpu.index, error.what()));
  }
  return static_cast<std::int64_t>(free_bytes);
}

std::optional<int> libtorch_number_of(int gpu) {
  return gpu;
}

std::optional<int> selected_gpu() {
  int gpu = 0;
  if (cudaGetDevice(&gpu) != cudaSuccess) {
    cudaGetLastError();  // the caller's next call reports it
    return std::nullopt;
  }
  return has_context(gpu) ? std::optional(gpu) : std::nullopt;
}

void select_gpu(int gpu) noexcept {
  if (cudaSetDevice(gpu) != cudaSuccess) cudaGetLastError();
}

void sleep_while_waiting(const GpuDescription& gpu) {
  OLRANK_CUDA_CHECK(cudaSetDevice(gpu.index));
  OLRANK_CUDA_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
}

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec) {
  return cuda::make_network(spec);
}

std::shared_ptr<DeviceBatch> make_device_batch(int device, std::int64_t seats) {
  return cuda::make_batch(device, seats);
}

std::unique_ptr<DeviceLists> make_device_lists(const DeviceListsSpec& spec) {
  return cuda::make_lists(spec);
}

std::shared_ptr<DeviceIntake> make_device_intake(int device) {
  return cuda::make_intake(device);
}

}  // namespace olrank
