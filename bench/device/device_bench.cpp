// Times each kernel operation, and the widths and training steps made of them, on the device: relative to
// the device's measured ceilings and to the same computation in LibTorch calls, in one process.
//   device_bench [--only TEXT] [--json FILE] [--list]
// Exits with 77 without a GPU, and with 1 if an operation and LibTorch disagree. Missed targets are
// reported but do not fail.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/device/ceilings.h"
#include "bench/device/device_case.h"
#include "bench/device/device_report.h"
#include "bench/device/graph_timer.h"
#include "core/device/visible_gpus.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "cuda/runtime/check.h"

namespace olrank {
namespace {

constexpr int kSkipped = 77;

struct Wishes {
  std::string only;
  std::string json;
  bool list = false;
};

void wait_for_device() {
  OLRANK_CUDA_CHECK(cudaDeviceSynchronize());
}

/// Compares the results before anything is timed.
double checked_disagreement(const DeviceCase& one, const DeviceWork& work, Stream stream) {
  if (!work.disagreement) return 0.0;
  const double found = work.disagreement(stream);
  if (!(found <= work.tolerance)) {
    throw NumericError(fmt::format(
        "The results of {} and LibTorch differ by {:.2g} relative to the largest number; at most {:.2g} is "
        "allowed.",
        one.name, found, work.tolerance));
  }
  return found;
}

DeviceRow measure(const DeviceCase& one, DeviceCeilings& ceilings) {
  at::manual_seed(1);
  const Stream stream = c10::cuda::getCurrentCUDAStream().stream();
  const DeviceWork work = one.prepare(stream);
  wait_for_device();
  DeviceRow row;
  row.disagreement = checked_disagreement(one, work, stream);
  const DeviceCeilings::Binding ceiling = ceilings.binding(one);
  Measurement& measurement = row.measurement;
  measurement.name = one.name;
  measurement.device = "cuda";
  measurement.parameters = one.parameters;
  measurement.operations = one.operations;
  measurement.bytes = one.bytes;
  measurement.ceiling = ceiling.name;
  measurement.ceiling_value = ceiling.value;
  measurement.seconds = device_seconds([&] { work.own(stream); });
  measurement.share = ceiling.least_time / measurement.seconds.median;
  if (one.least_share > 0.0)
    row.verdicts.push_back({"share of " + ceiling.name, measurement.share, one.least_share});
  if (work.libtorch) {
    row.started = started_seconds(work.libtorch);
    try {
      row.libtorch = device_seconds(work.libtorch);
    } catch (const c10::Error&) {
      row.captured = false;
      row.libtorch = row.started;
    }
    if (one.least_ratio > 0.0) row.verdicts.push_back({"times LibTorch", row.ratio(), one.least_ratio});
  }
  wait_for_device();
  return row;
}

int measure_all(const std::vector<DeviceCase>& cases, const Wishes& wishes, const std::string& device) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
  DeviceCeilings ceilings = DeviceCeilings::measured();
  fmt::print(
      "{}: copy {:.0f} GB/s; matrix products: float32 {:.1f} TFLOP/s, TF32 {:.1f} TFLOP/s, double {:.1f} "
      "TFLOP/s\n",
      device, 1e-9 * ceilings.copy(), 1e-12 * ceilings.gemm_float(), 1e-12 * ceilings.gemm_tf32(),
      1e-12 * ceilings.gemm_double());
  std::vector<DeviceRow> rows;
  const auto save = [&] {
    if (wishes.json.empty()) return;
    write_file_atomically(wishes.json, device_json("device_bench",
                                                   {device, ceilings.copy(), ceilings.gemm_float(),
                                                    ceilings.gemm_tf32(), ceilings.gemm_double()},
                                                   rows));
  };
  int status = 0;
  for (const DeviceCase& one : cases) {
    fmt::print(stderr, "{}\n", one.name);
    try {
      rows.push_back(measure(one, ceilings));
      save();                                // a later case may hang
    } catch (const std::exception& error) {  // the other cases are still measured
      fmt::print(stderr, "device_bench: {}: {}\n", one.name, error.what());
      status = 1;
    }
  }
  check_member_targets(rows);
  fmt::print("{}", device_table(rows));
  save();
  return status;
}

int run(const Wishes& wishes) {
  std::vector<DeviceCase> cases;
  for (DeviceCase& one : device_cases({})) {
    if (one.name.find(wishes.only) != std::string::npos) cases.push_back(std::move(one));
  }
  if (cases.empty())
    throw InvalidArgument(fmt::format(
        "--only {}: no operation's name contains this text; --list prints all names.", wishes.only));
  if (wishes.list) {
    for (const DeviceCase& one : cases) fmt::print("{}\n", one.name);
    return 0;
  }
  const GpuSurvey survey = visible_gpus();
  if (survey.gpus.empty()) {
    fmt::print(stderr, "device_bench: no GPU to measure: {}.\n", survey.absence);
    return kSkipped;
  }
  return measure_all(cases, wishes, survey.gpus.front().name);
}

int run(int argc, char** argv) {
  Wishes wishes;
  CLI::App app{"Times every kernel operation against its ceiling and against LibTorch."};
  app.add_option("--only", wishes.only, "only operations whose name contains this text");
  app.add_option("--json", wishes.json, "write the measurements to FILE");
  app.add_flag("--list", wishes.list, "print the names of the operations and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run(wishes);
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  try {
    return olrank::run(argc, argv);
  } catch (const olrank::Error& error) {
    fmt::print(stderr, "device_bench: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "device_bench: {}\n", error.what());
    return 1;
  }
}
