#pragma once

#include <string>

namespace olrank {

/// What LibTorch says of itself.
struct LibtorchDescription {
  std::string version;
  bool cuda = false;           // whether its CUDA part is loaded, a GPU or not
  std::string cpu_capability;  // the vector instructions its own kernels use
};

LibtorchDescription describe_libtorch();

/// LibTorch works on the calling thread alone from here on: parallelism is ours. To be called once by each
/// thread that uses it.
void use_one_libtorch_thread();

}  // namespace olrank
