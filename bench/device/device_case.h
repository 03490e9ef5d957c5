#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

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
  std::int64_t scored_at_once = 8192;  // documents of an evaluation
  bool on_gpu = true;                  // tests run the kernels' own source on the CPU
};

/// The arithmetic that dominates an operation.
enum class Arithmetic { kFloat, kTf32, kDouble };

/// An operation that is ready to run repeatedly.
struct DeviceWork {
  std::function<void(Stream)> own;
  std::function<void()>
      libtorch;  // the same in LibTorch calls, on its current stream; empty if there is no such form
  /// Runs both and returns their largest difference, relative to the largest number.
  std::function<double(Stream)> disagreement;
  double tolerance = 0.0;
};

struct DeviceCase {
  std::string name;  // "tangent_kernel/pair_doc_kernel": the operation's stem and entry
  std::vector<std::pair<std::string, std::int64_t>> parameters;
  double operations = 0.0;  // multiplications and additions
  double bytes = 0.0;       // least number read and written
  Arithmetic arithmetic = Arithmetic::kDouble;
  double least_share = 0.0;  // target: share of the limiting ceiling; 0 for none
  double least_ratio = 0.0;  // target: LibTorch's time over ours; 0 for none
  std::function<DeviceWork(Stream)> prepare;
};

std::vector<DeviceCase> ranking_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> diagonal_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> dual_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> primal_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> rebuild_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> training_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> persistent_cases(const DeviceSizes& sizes);
std::vector<DeviceCase> small_cases(const DeviceSizes& sizes);
/// All kernel operations, and the widths and training steps made of them.
std::vector<DeviceCase> device_cases(const DeviceSizes& sizes);

// Targets.
constexpr double kWantedShare = 0.7;  // of the limiting ceiling, at the largest n
constexpr double kWantedShareOfMembers = 0.8;
constexpr double kWantedWidthRatio = 3.0;
constexpr double kWantedTrainingRatio = 2.0;

}  // namespace olrank
