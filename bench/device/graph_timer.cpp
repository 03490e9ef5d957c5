#include "bench/device/graph_timer.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <exception>
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

std::int64_t calls_a_repeat(const std::function<void()>& work) {
  double once = 0.0;
  for (int call = 0; call < kWarmUp; ++call) once = seconds_of(work);
  return std::clamp<std::int64_t>(std::llround(kGraphSeconds / once), 1, kMostCalls);
}

/// Of one of `calls` calls that `body` makes together.
Spread repeated(std::int64_t calls, const std::function<void()>& body) {
  seconds_of(body);
  std::vector<double> seconds;
  double spent = 0.0;
  for (std::int64_t repeat = 0; repeat < kFewest || (spent < kAllSeconds && repeat < kMost); ++repeat) {
    const double taken = seconds_of(body);
    spent += taken;
    seconds.push_back(taken / static_cast<double>(calls));
  }
  return spread_of(std::move(seconds));
}

void capture(at::cuda::CUDAGraph& graph, const std::function<void()>& body) {
  graph.capture_begin();
  try {
    body();
  } catch (...) {
    try {
      graph.capture_end();             // else the stream would go on capturing
    } catch (const std::exception&) {  // it says again what the body has said
    }
    throw;
  }
  graph.capture_end();
}

}  // namespace

Spread device_seconds(const std::function<void()>& work) {
  const std::int64_t calls = calls_a_repeat(work);
  at::cuda::CUDAGraph graph;
  capture(graph, [&] {
    for (std::int64_t call = 0; call < calls; ++call) work();
  });
  return repeated(calls, [&] { graph.replay(); });
}

Spread started_seconds(const std::function<void()>& work) {
  const std::int64_t calls = calls_a_repeat(work);
  return repeated(calls, [&] {
    for (std::int64_t call = 0; call < calls; ++call) work();
  });
}

}  // namespace olrank
