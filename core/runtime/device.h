#pragma once

#include <string>
#include <string_view>

namespace olrank {

enum class DeviceKind { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  // of the GPU, as CUDA numbers the visible ones

  friend bool operator==(const Device&, const Device&) = default;
  std::string name() const;  // "cpu", "cuda:0"
};

/// What a user asked for; `auto` leaves the choice to olrank.
struct DeviceRequest {
  bool automatic = true;
  Device device;
};

/// Parses auto, cpu, cuda or cuda:N; throws InvalidArgument for anything else.
DeviceRequest parse_device(std::string_view text);

}  // namespace olrank
