// Times each kernel operation, and the widths and training steps made of them, on the device: relative to
// the device's measured ceilings and to the same computation in LibTorch calls, in one process.
//   device_bench [--only TEXT]… [--ceilings | --once | --ab] [--json FILE] [--list]
// Exits with 77 without a GPU, and with 1 if an operation and LibTorch disagree. Missed targets are
// reported but do not fail.
#include <ATen/Context.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/device/device_case.h"
#include "bench/device/device_report.h"
#include "core/io/atomic_file.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr int kSkipped = 77;

struct Wishes {
  std::vector<std::string> only;
  std::string json;
  bool ceilings = false;
  bool once = false;
  bool in_turns = false;
  bool list = false;
};

/// Compares the results before anything is timed.
double checked_disagreement(const DeviceCase& one, const DeviceWork& work, Stream stream) {
  if (!work.disagreement) return 0.0;
  if (work.refresh) work.refresh();
  const double found = work.disagreement(stream);
  if (!(found <= work.tolerance)) {
    throw_error<NumericError>(
        "The results of {} and LibTorch differ by {:.2g} relative to the largest number; at most {:.2g} is "
        "allowed.",
        one.name, found, work.tolerance);
  }
  return found;
}

class DeviceBench {
 public:
  DeviceBench(const BenchDevice& device, Stream stream)
      : device_(device), stream_(stream), ceilings_(DeviceCeilings::measured(device.sizes)) {}

  /// Returns 1 if a case failed.
  int measure_all(const std::vector<DeviceCase>& cases, const std::string& json) {
    const PeakRates& rates = ceilings_.rates();
    fmt::print(
        "{}: copy {:.0f} GB/s; matrix products: float32 {:.1f}, TF32 {:.1f}, double {:.1f} TFLOP/s\n",
        device_.name, 1e-9 * rates.copy, 1e-12 * rates.gemm_float, 1e-12 * rates.gemm_tf32,
        1e-12 * rates.gemm_double);
    DeviceDescription description{device_.name, rates, {}};
    std::vector<DeviceRow> rows;
    const auto save = [&] {
      if (!json.empty()) write_file_atomically(json, device_json("device_bench", description, rows));
    };
    int status = 0;
    for (const DeviceCase& one : cases) {
      fmt::print(stderr, "{}\n", one.identity());
      try {
        rows.push_back(measure(one));
        save();                                // a later case may hang
      } catch (const std::exception& error) {  // the other cases are still measured
        fmt::print(stderr, "device_bench: {}: {}\n", one.identity(), error.what());
        status = 1;
      }
    }
    check_member_targets(rows);
    if (!cases.empty()) description.rates_at_end = DeviceCeilings::measured(device_.sizes).rates();
    fmt::print("{}", device_table(rows));
    save();
    return status;
  }

 private:
  DeviceRow measure(const DeviceCase& one) {
    at::manual_seed(1);
    const DeviceWork work = one.prepare(stream_);
    wait_for_device();
    DeviceRow row;
    row.disagreement = checked_disagreement(one, work, stream_);
    const DeviceCeilings::Binding ceiling = ceilings_.binding(one);
    Measurement& measurement = row.measurement;
    measurement.name = one.name;
    measurement.device = "cuda";
    measurement.parameters = one.parameters;
    measurement.operations = one.least.operations;
    measurement.bytes = one.least.bytes;
    measurement.ceiling = ceiling.name;
    measurement.ceiling_value = ceiling.value;
    const auto own = [&] { work.own(stream_); };
    measurement.seconds = device_seconds(own, work.refresh);
    measurement.share = ceiling.least_time / measurement.seconds.median;
    if (one.wanted.share > 0.0)
      row.verdicts.push_back({"share of " + ceiling.name, measurement.share, one.wanted.share});
    if (work.libtorch) {
      try {
        row.libtorch = device_seconds(work.libtorch);
      } catch (const c10::Error&) {
        row.captured = false;
        row.libtorch = started_seconds(work.libtorch);
      }
      if (one.wanted.ratio > 0.0) row.verdicts.push_back({"times LibTorch", row.ratio(), one.wanted.ratio});
    }
    wait_for_device();
    return row;
  }

  const BenchDevice& device_;
  Stream stream_;
  DeviceCeilings ceilings_;
};

/// Starts the operations' kernels alone for a profiler, each once, after one that is not watched.
void start_once(const std::vector<DeviceCase>& cases, Stream stream) {
  for (const DeviceCase& one : cases) {
    at::manual_seed(1);
    const DeviceWork work = one.prepare(stream);
    work.own(stream);
    wait_for_device();
    fmt::print("{}\n", one.identity());
    std::fflush(stdout);  // in order with what a profiler prints
    if (work.refresh) work.refresh();
    profile_once([&] { work.own(stream); });
  }
}

std::vector<DeviceCase> chosen_cases(const DeviceSizes& sizes, const std::vector<std::string>& only) {
  std::vector<DeviceCase> cases;
  std::vector<bool> found(only.size());
  for (DeviceCase& one : device_cases(sizes)) {
    bool chosen = only.empty();
    for (std::size_t i = 0; i < only.size(); ++i) {
      if (one.identity().find(only[i]) == std::string::npos) continue;
      found[i] = true;
      chosen = true;
    }
    if (chosen) cases.push_back(std::move(one));
  }
  const auto missing = std::find(found.begin(), found.end(), false);
  if (missing != found.end())
    throw_error<InvalidArgument>(
        "--only {}: no operation's name contains this text; --list prints all names.",
        only[static_cast<std::size_t>(missing - found.begin())]);
  return cases;
}

int run(const Wishes& wishes) {
  if (wishes.list) {
    for (const DeviceCase& one : chosen_cases({}, wishes.only)) fmt::print("{}\n", one.identity());
    return 0;
  }
  std::string absence;
  const std::optional<BenchDevice> device = find_bench_device(absence);
  std::vector<DeviceCase> cases = chosen_cases(device ? device->sizes : DeviceSizes{}, wishes.only);
  if (!device) {
    fmt::print(stderr, "device_bench: no GPU to measure: {}.\n", absence);
    return kSkipped;
  }
  if (wishes.ceilings) cases.clear();
  // A card's rates fall while it is hot, and late operations would look slow beside early ones.
  const auto variants = static_cast<std::ptrdiff_t>(cases.size());
  for (std::ptrdiff_t i = 0; wishes.in_turns && i < variants; ++i) cases.push_back(cases[i]);
  int status = 0;
  on_bench_stream([&](Stream stream) {
    if (wishes.once) {
      start_once(cases, stream);
    } else {
      status = DeviceBench(*device, stream).measure_all(cases, wishes.json);
    }
  });
  return status;
}

int run(int argc, char** argv) {
  Wishes wishes;
  CLI::App app{"Times every kernel operation against its ceiling and against LibTorch."};
  app.add_option("--only", wishes.only,
                 "only operations whose name and sizes contain this text; may be repeated");
  auto* ceilings = app.add_flag("--ceilings", wishes.ceilings, "measure the ceilings only");
  app.add_flag("--once", wishes.once, "start every operation once, for a profiler, and time nothing")
      ->excludes(ceilings);
  app.add_flag("--ab", wishes.in_turns, "measure the operations that --only names in turns: A B A B")
      ->excludes("--once")
      ->needs("--only");
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
  } catch (const std::exception& error) {
    fmt::print(stderr, "device_bench: {}\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
