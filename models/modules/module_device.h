#pragma once

#include <ATen/Context.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

#include <optional>

#include "core/error.h"

namespace olrank {

/// Where the copies of a module compute: the CPU, or a GPU in a stream of the module's own, so that trials
/// on one GPU do not wait for each other.
class ModuleDevice {
 public:
  /// `gpu` as LibTorch numbers them. Throws NotBuiltWithCuda.
  explicit ModuleDevice(std::optional<int> gpu) {
    if (!gpu) return;
    if (!at::Context::hasCUDA()) throw NotBuiltWithCuda("A LibTorch module on a GPU");
    device_ = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*gpu));
    stream_ = c10::impl::VirtualGuardImpl(torch::kCUDA).getStreamFromGlobalPool(device_);
  }

  const torch::Device& get() const { return device_; }
  bool is_cpu() const { return device_.is_cpu(); }
  /// Where the calling thread starts its work while it has an OptionalStreamGuard of it; none on the CPU.
  const std::optional<c10::Stream>& stream() const { return stream_; }

 private:
  torch::Device device_{torch::kCPU};
  std::optional<c10::Stream> stream_;
};

}  // namespace olrank
