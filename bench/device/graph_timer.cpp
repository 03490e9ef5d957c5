#include "bench/device/graph_timer.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cuda/runtime/check.h"

namespace olrank {
namespace {

constexpr int kWarmUp = 3;
constexpr double kGraphSeconds = 1e-3;  // of one replay: long beside the clock's half microsecond
constexpr std::int64_t kMostCalls = 64;
constexpr std::int64_t kFewest = 9;
constexpr std::int64_t kMost = 41;
constexpr double kAllSeconds = 0.05;

class Event {
 public:
  Event() { OLRANK_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() { OLRANK_CUDA_CHECK(cudaEventRecord(event_, c10::cuda::getCurrentCUDAStream().stream())); }
  /// Seconds since an earlier one; waits.
  double seconds_since(const Event& earlier) const {
    OLRANK_CUDA_CHECK(cudaEventSynchronize(event_));
    float milliseconds = 0.0F;
    OLRANK_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

double seconds_of(const std::function<void()>& body) {
  Event before;
  Event after;
  before.record();
  body();
  after.record();
  return after.seconds_since(before);
}

}  // namespace

Spread device_seconds(const std::function<void()>& work) {
  double once = 0.0;
  for (int call = 0; call < kWarmUp; ++call) once = seconds_of(work);
  const auto calls = std::clamp<std::int64_t>(std::llround(kGraphSeconds / once), 1, kMostCalls);
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  for (std::int64_t call = 0; call < calls; ++call) work();
  graph.capture_end();
  const auto replay = [&] { graph.replay(); };
  seconds_of(replay);
  std::vector<double> seconds;
  double spent = 0.0;
  for (std::int64_t repeat = 0; repeat < kFewest || (spent < kAllSeconds && repeat < kMost); ++repeat) {
    const double taken = seconds_of(replay);
    spent += taken;
    seconds.push_back(taken / static_cast<double>(calls));
  }
  return spread_of(std::move(seconds));
}

}  // namespace olrank
