#include "bench/device/bench_tensors.h"

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
#include "cuda/ops/tangent_factors.h"
#include "cuda/runtime/check.h"

namespace olrank {

at::TensorOptions options_of(const DeviceSizes& sizes, at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(sizes.on_gpu ? at::kCUDA : at::kCPU);
}

double disagreement_of(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor b = expected.to(at::kDouble);
  const at::Tensor a = found.to(at::kDouble).reshape(b.sizes());
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

DeviceWork alone(std::function<void(Stream)> own) {
  DeviceWork work;
  work.own = std::move(own);
  return work;
}

DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const std::function<double(const at::Tensor&)>& differs, double tolerance) {
  DeviceWork work = alone(own);
  work.libtorch = [form] { form(); };
  work.disagreement = [=](Stream on) {
    own(on);
    return differs(form());
  };
  work.tolerance = tolerance;
  return work;
}

DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const at::Tensor& result, double tolerance) {
  const std::function<double(const at::Tensor&)> differs = [result](const at::Tensor& expected) {
    return disagreement_of(result, expected);
  };
  return compared(own, form, differs, tolerance);
}

MadeDocs::MadeDocs(const DeviceSizes& sizes, Stream stream, std::int64_t count, std::int64_t networks)
    : shape(ntk_shape(sizes.features, sizes.width, sizes.depth)), members(networks), docs(count) {
  const Operands make{sizes};
  // Scores some units apart: √m times a sum of m terms of this size.
  theta.t = make.randn<float>({members, shape.parameters()}).t *
            (1.0 / std::sqrt(real(sizes.width) * std::sqrt(real(sizes.features))));
  features = make.rand<float>({docs, sizes.features});
  rows = make.empty<float>({members, docs, shape.factors()});
  scores = make.empty<float>({members, docs});
  magnitudes = make.empty<float>({members, docs});
  device::tangent_factors(products(stream), stack(), features, view(), out());
}

Launches::Launches(const DeviceSizes& of)
    : sizes(of),
      shape(ntk_shape(of.features, of.width, of.depth)),
      p(shape.parameters()),
      most_pairs(*std::max_element(of.pairs.begin(), of.pairs.end())) {}

std::vector<DeviceCase> device_cases(const DeviceSizes& sizes) {
  Launches table(sizes);
  add_ranking(table);
  add_covariances(table);
  add_training(table);
  add_small(table);
  // A training step of a wide network, where products take all the time: ours and LibTorch's, which are
  // those of cuBLAS.
  DeviceSizes wide = sizes;
  wide.width = sizes.wide;
  wide.pairs = {table.most_pairs};
  wide.members = {1};
  Launches of_wide(wide);
  add_training(of_wide);
  for (DeviceCase& one : of_wide.cases) {
    if (one.name != "training/step") continue;
    one.wanted = {};
    table.cases.push_back(std::move(one));
  }
  return std::move(table.cases);
}

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
  int cache_bytes = 0;
  OLRANK_CUDA_CHECK(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0));
  return BenchDevice{survey.gpus.front().name, {}, cache_bytes};
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

Spread device_seconds(const std::function<void()>& work) {
  const std::int64_t calls = calls_a_repeat(work);
  at::cuda::CUDAGraph graph;
  capture(graph, calls, work);
  return repeated(calls, [&] { return seconds_of([&] { graph.replay(); }); });
}

Spread started_seconds(const std::function<void()>& work) {
  const std::int64_t calls = calls_a_repeat(work);
  return repeated(calls, [&] {
    return seconds_of([&] {
      for (std::int64_t call = 0; call < calls; ++call) work();
    });
  });
}

Spread cold_seconds(const std::function<void()>& sweep, const std::function<void()>& work) {
  const auto both = [&] {
    sweep();
    work();
  };
  const std::int64_t calls = calls_a_repeat(both);
  at::cuda::CUDAGraph of_both;
  at::cuda::CUDAGraph of_sweeps;
  capture(of_both, calls, both);
  capture(of_sweeps, calls, sweep);
  return repeated(calls, [&] {
    const double without = seconds_of([&] { of_sweeps.replay(); });
    return std::max(0.0, seconds_of([&] { of_both.replay(); }) - without);
  });
}

}  // namespace olrank
