#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace olrank {

struct GpuDescription {
  int index = 0;
  std::string name;
  int capability_major = 0;
  int capability_minor = 0;
  int multiprocessors = 0;
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
};

/// What this build and this machine offer in GPUs. Never throws for their absence: `absence` says why there
/// are none, in words that complete "No GPU: …".
struct GpuSurvey {
  bool built_with_cuda = false;
  int runtime_version = 0;   // 13000 for 13.0; 0 without
  int driver_version = 0;    // the newest CUDA that the driver serves; 0 without
  int least_capability = 0;  // 90 for 9.0: what this build's kernels need; 0 without CUDA
  std::vector<GpuDescription> gpus;
  std::string absence;
};

/// Defined once: by cuda/runtime in a CUDA build, else by the stubs.
GpuSurvey visible_gpus();

}  // namespace olrank
