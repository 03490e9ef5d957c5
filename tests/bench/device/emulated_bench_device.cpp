#include <ATen/ATen.h>

#include <chrono>
#include <utility>
#include <vector>

#include "bench/device/device_case.h"
#include "bench/device/libtorch_forms.h"
#include "tests/cuda/emulation/device_memory.h"

// A device that is the CPU and the kernels' own source, at tiny sizes. Its times mean nothing.
namespace olrank {
namespace {

constexpr int kRepeats = 2;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

DeviceSizes rehearsed_sizes() {
  DeviceSizes sizes;
  sizes.features = 5;
  sizes.width = 8;
  sizes.docs = 12;
  sizes.pairs = {6, 140};  // the second over the edge of a row block
  sizes.members = {1, 3};
  sizes.wide = 12;
  sizes.test_queries = 3;
  sizes.on_gpu = false;
  return sizes;
}

}  // namespace

std::optional<BenchDevice> find_bench_device(std::string& /*absence*/) {
  emulation::machine.shares_host_memory = true;  // LibTorch's tensors
  return BenchDevice{"no GPU: a rehearsal on the CPU", rehearsed_sizes()};
}

void on_bench_stream(const std::function<void(Stream)>& body) {
  body(nullptr);
}

void wait_for_device() {}

void profile_once(const std::function<void()>& work) {
  work();
}

Spread device_seconds(const std::function<void()>& work, const std::function<void()>& refresh) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    if (refresh) refresh();
    seconds.push_back(seconds_of(work));
  }
  return spread_of(std::move(seconds));
}

Spread started_seconds(const std::function<void()>& work) {
  return device_seconds(work);
}

}  // namespace olrank
