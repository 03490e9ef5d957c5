#include "bench/device/device_case.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "core/device/visible_gpus.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/work.h"

namespace olrank {
namespace {

constexpr int kWarmUp = 3;
constexpr double kGraphSeconds = 1e-3;  // of one replay: long beside the clock's half microsecond
constexpr std::int64_t kMostCalls = 64;
constexpr std::int64_t kFewest = 9;
constexpr std::int64_t kMost = 41;
constexpr double kAllSeconds = 0.05;

double seconds_of(const std::function<void()>& body) {
  const Stream stream = c10::cuda::getCurrentCUDAStream().stream();
  cuda::Event before;
  cuda::Event after;
  before.record(stream);
  body();
  after.record(stream);
  after.wait();
  return after.seconds_since(before);
}

std::int64_t calls_a_repeat(const std::function<void()>& work) {
  double once = kGraphSeconds;
  for (int call = 0; call < kWarmUp; ++call) once = seconds_of(work);
  return std::clamp<std::int64_t>(std::llround(kGraphSeconds / once), 1, kMostCalls);
}

/// Seconds of one of the `calls` calls in what `repeat` times.
Spread repeated(std::int64_t calls, const std::function<double()>& repeat) {
  repeat();
  std::vector<double> seconds;
  double spent = 0.0;
  for (std::int64_t i = 0; i < kFewest || (spent < kAllSeconds && i < kMost); ++i) {
    const double taken = repeat();
    spent += taken;
    seconds.push_back(taken / static_cast<double>(calls));
  }
  return spread_of(std::move(seconds));
}

void capture(at::cuda::CUDAGraph& graph, std::int64_t calls, const std::function<void()>& work) {
  graph.capture_begin();
  try {
    for (std::int64_t call = 0; call < calls; ++call) work();
  } catch (...) {
    try {
      graph.capture_end();             // else the stream would go on capturing
    } catch (const std::exception&) {  // it says again what the work has said
    }
    throw;
  }
  graph.capture_end();
}

}  // namespace

std::optional<BenchDevice> find_bench_device(std::string& absence) {
  const GpuSurvey survey = visible_gpus();
  absence = survey.absence;
  if (survey.gpus.empty()) return std::nullopt;
  at::globalContext().lazyInitDevice(at::kCUDA);
  return BenchDevice{survey.gpus.front().name, {}};
}

void on_bench_stream(const std::function<void(Stream)>& body) {
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
  body(c10::cuda::getCurrentCUDAStream().stream());
}

void wait_for_device() {
  OLRANK_CUDA_CHECK(cudaDeviceSynchronize());
}

void profile_once(const std::function<void()>& work) {
  OLRANK_CUDA_CHECK(cudaProfilerStart());
  work();
  wait_for_device();
  OLRANK_CUDA_CHECK(cudaProfilerStop());
}

Spread device_seconds(const std::function<void()>& work, const std::function<void()>& refresh) {
  const std::int64_t found = calls_a_repeat(work);
  const std::int64_t calls = refresh ? 1 : found;
  at::cuda::CUDAGraph graph;
  capture(graph, calls, work);
  return repeated(calls, [&] {
    if (refresh) refresh();
    return seconds_of([&] { graph.replay(); });
  });
}

Spread started_seconds(const std::function<void()>& work) {
  const std::int64_t calls = calls_a_repeat(work);
  return repeated(calls, [&] {
    return seconds_of([&] {
      for (std::int64_t call = 0; call < calls; ++call) work();
    });
  });
}

}  // namespace olrank
