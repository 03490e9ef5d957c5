#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measurement.h"
#include "cuda/ops/tangent_factors.h"
#include "cuda/runtime/stream.h"

namespace olrank {

/// Sizes of the measured operations; the defaults are the papers' network and a long query.
struct DeviceSizes {
  std::int64_t features = 136;                         // d
  std::int64_t width = 100;                            // m
  std::int64_t depth = 2;                              // L
  std::int64_t docs = 125;                             // V
  std::vector<std::int64_t> pairs{100, 1000, 10'000};  // n
  std::vector<std::int64_t> members{1, 10};            // N
  std::int64_t wide = 512;                             // m of a wide network
  std::int64_t test_queries = 2000;
  bool on_gpu = true;  // tests run the kernels' own source on the CPU
};

/// The arithmetic that dominates an operation. A product of float32 numbers may be three of TF32 numbers.
enum class Arithmetic { kFloat, kTf32x3, kDouble };

/// An operation that is ready to run repeatedly.
struct DeviceWork {
  std::function<void(Stream)> own = {};
  /// Does the same in LibTorch calls, on its current stream; empty if there is no such form.
  std::function<void()> libtorch = {};
  /// Writes the inputs again that `own` uses up, before each of its calls; no time is counted for it. Empty
  /// where every call finds the same inputs.
  std::function<void()> refresh = {};
  /// Runs both and returns their largest difference, relative to the largest number.
  std::function<double(Stream)> disagreement = {};
  double tolerance = 0.0;
};

/// The least that an operation does: multiplications and additions, and bytes read and written.
struct LeastWork {
  double operations = 0.0;
  double bytes = 0.0;
  Arithmetic arithmetic = Arithmetic::kDouble;
};

/// The share of the limiting ceiling and LibTorch's time over ours that are wanted; 0 for none.
struct Wanted {
  double share = 0.0;
  double ratio = 0.0;
};
constexpr double kWantedShare = 0.7;  // at the largest n
constexpr double kWantedShareOfMembers = 0.8;
constexpr double kWantedWidthRatio = 3.0;
constexpr double kWantedTrainingRatio = 2.0;

using CaseParameters = std::vector<std::pair<std::string, std::int64_t>>;
using PrepareWork = std::function<DeviceWork(Stream)>;

/// 0 where there is none of this name.
std::int64_t parameter_of(const CaseParameters& parameters, std::string_view name);

struct DeviceCase {
  std::string name;  // "tangent_kernel/pair_doc_kernel": the operation's stem and entry
  CaseParameters parameters;
  LeastWork least;
  PrepareWork prepare;
  Wanted wanted;

  /// The name and all parameters.
  std::string identity() const;
};

/// The table of launches: a row for each operation at each size.
struct Launches {
  DeviceSizes sizes;
  NetworkShape shape;
  std::int64_t p;
  std::int64_t most_pairs;
  std::vector<DeviceCase> cases;

  explicit Launches(const DeviceSizes& of);
  void add(std::string name, CaseParameters parameters, LeastWork least, PrepareWork prepare,
           Wanted wanted = {}) {
    cases.push_back({std::move(name), std::move(parameters), least, std::move(prepare), wanted});
  }
  /// The share that is wanted at n pairs.
  double share_at(std::int64_t n, std::int64_t members = 1) const {
    return n != most_pairs ? 0.0 : members > 1 ? kWantedShareOfMembers : kWantedShare;
  }
};

void add_ranking(Launches& table);
void add_covariances(Launches& table);
void add_training(Launches& table);
/// All kernel operations, and the widths and training steps made of them.
std::vector<DeviceCase> device_cases(const DeviceSizes& sizes);

// The device that device_bench measures: a GPU in bench_device.cpp. A rehearsal links another definition of
// the same functions, in which the CPU runs the kernels' own source at tiny sizes.

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
