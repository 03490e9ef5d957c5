#pragma once

#include <string>

namespace olrank {

/// The version and capabilities of the LibTorch in use.
struct LibtorchDescription {
  std::string version;
  bool cuda = false;           // whether its CUDA part is loaded, even without a GPU
  std::string cpu_capability;  // the vector instructions that its kernels use
};

LibtorchDescription describe_libtorch();

/// Limits LibTorch to the calling thread, because olrank does its own threading. Each thread that uses
/// LibTorch calls this once.
void use_one_libtorch_thread();

}  // namespace olrank
