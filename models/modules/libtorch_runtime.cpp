#include "models/modules/libtorch_runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

namespace olrank {

LibtorchDescription describe_libtorch() {
  return {.version = TORCH_VERSION,
          .cuda = at::Context::hasCUDART(),
          .cpu_capability = at::get_cpu_capability()};
}

void use_one_libtorch_thread() {
  at::set_num_threads(1);
}

}  // namespace olrank
