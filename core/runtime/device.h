#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// GPUs `first` to `last`, as CUDA numbers the visible ones.
struct GpuRange {
  int first = 0;
  int last = 0;

  friend bool operator==(const GpuRange&, const GpuRange&) = default;
};

enum class DeviceKind { kAuto, kCpu, kGpus };

/// A request is what a user asked for; `auto` leaves the choice to olrank.
struct DeviceRequest {
  DeviceKind kind = DeviceKind::kAuto;
  bool every_gpu = false;
  std::vector<GpuRange> gpus;  // ascending and disjoint; empty with every_gpu

  bool on_gpus() const { return kind == DeviceKind::kGpus; }
};

/// Parses auto, cpu, cuda (the first GPU), cuda:all, or a list of GPUs and ranges: cuda:1, cuda:0-3,
/// cuda:0-1,4. Throws InvalidArgument for anything else.
DeviceRequest parse_device(std::string_view text);

/// The shortest name of these GPUs, in ascending order: "cuda:1", "cuda:0-3", "cuda:0-1,4". Without any it
/// is "cpu".
std::string device_name(std::span<const int> gpus);

/// The processor's name, as the system gives it; "unknown" where it gives none.
std::string cpu_model();

/// Now, as "2026-01-31T23:59:59Z".
std::string utc_now();

}  // namespace olrank
