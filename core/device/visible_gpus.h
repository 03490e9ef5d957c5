#pragma once

#include <cstdint>
#include <optional>
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
  std::int64_t free_bytes = 0;  // 0 until free_bytes_of() was asked
};

/// A library that computes on GPUs: the version that was loaded, and the one that this build was made with.
/// Results keep their bits per version.
struct DeviceLibrary {
  std::string name;
  std::string version;
  std::string built_with;
};

/// The GPUs that this build can use on this machine. If there are none, `absence` is a clause that says
/// why.
struct GpuSurvey {
  bool built_with_cuda = false;
  int runtime_version = 0;               // 13000 for 13.0; 0 without CUDA
  int driver_version = 0;                // the newest CUDA that the driver supports; 0 without a driver
  int least_capability = 0;              // that this build's kernels need, 90 for 9.0; 0 without CUDA
  std::vector<DeviceLibrary> libraries;  // empty without CUDA
  std::vector<GpuDescription> gpus;
  std::string absence;
};

// Defined by cuda/runtime in a CUDA build, else by cuda/not_built.cpp.

/// Reads attributes only. What takes memory of a GPU, a context, is left to the functions below.
GpuSurvey visible_gpus();

/// Free memory of a GPU of this survey. Makes a context there.
std::int64_t free_bytes_of(const GpuDescription& gpu);

/// The number of this GPU in LibTorch; none for an emulated one, next to which LibTorch stays on the CPU.
std::optional<int> libtorch_number_of(int gpu);

/// The GPU that the calling thread has selected; none where it has no context there, which selecting it
/// makes.
std::optional<int> selected_gpu();
void select_gpu(int gpu) noexcept;

/// Leaves the calling thread with the GPU that it had selected before.
class CallersGpu {
 public:
  explicit CallersGpu(bool uses_gpus) : before_(uses_gpus ? selected_gpu() : std::nullopt) {}
  ~CallersGpu() {
    if (before_ && selected_gpu() != before_) select_gpu(*before_);
  }
  CallersGpu(const CallersGpu&) = delete;
  CallersGpu& operator=(const CallersGpu&) = delete;

 private:
  std::optional<int> before_;
};

/// Threads that wait for this GPU sleep instead of spinning: for more threads than cores.
void sleep_while_waiting(const GpuDescription& gpu);

}  // namespace olrank
