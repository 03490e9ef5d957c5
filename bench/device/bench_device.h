#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bench/device/device_case.h"
#include "bench/measurement.h"

// The device that device_bench measures: a GPU in bench_device.cpp. A rehearsal links another definition of
// the same functions, in which the CPU runs the kernels' own source at tiny sizes.
namespace olrank {

struct BenchDevice {
  std::string name;
  DeviceSizes sizes;  // what it measures
};

/// The device, or in `absence` why there is none.
std::optional<BenchDevice> find_bench_device(std::string& absence);

/// Calls `body` with LibTorch's current stream set to one that can be captured.
void on_bench_stream(const std::function<void(Stream)>& body);

void wait_for_device();

/// Starts `work` once and waits, with profilers that were told to wait for it switched on.
void profile_once(const std::function<void()>& work);

/// Device seconds per call of `work`. Many calls are captured as a graph on LibTorch's current stream and
/// replayed between two events, so that launch overhead and host work are excluded. With a `refresh` the
/// graph has one call, and the refresh ends before the first event.
Spread device_seconds(const std::function<void()>& work, const std::function<void()>& refresh = {});

/// Times work that cannot be captured in a graph, call after call.
Spread started_seconds(const std::function<void()>& work);

}  // namespace olrank
