#pragma once

#include <string>
#include <string_view>

namespace olrank {

enum class DeviceKind { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  // of the GPU, as CUDA counts the visible ones

  friend bool operator==(const Device&, const Device&) = default;
  std::string name() const;  // "cpu", "cuda:0"
};

/// What a user asked for: `auto` leaves the choice to the machine.
struct DeviceRequest {
  bool automatic = true;
  Device device;
};

/// Reads auto, cpu, cuda or cuda:N; anything else is an InvalidArgument that says so.
DeviceRequest parse_device(std::string_view text);

}  // namespace olrank
