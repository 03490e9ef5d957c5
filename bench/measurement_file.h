#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"

namespace olrank {

/// The machine of a measurement; tells whether two files are comparable.
struct Machine {
  std::string processor;
  std::int64_t cores = 0;
  std::string blas;
  std::string compiler;
  std::string version;  // of the program, with its commit
  std::string date;
};

Machine this_machine();
nlohmann::ordered_json machine_json(const Machine& machine);
nlohmann::ordered_json spread_json(const Spread& spread);

/// The growth of a stage: time ~ axis^exponent.
struct FittedExponent {
  std::string stage;
  std::string axis;
  double exponent = 0.0;
  double last_half = 0.0;  // over the sizes from half of the largest on; NaN with fewer than two of them
};

struct MeasurementFile {
  std::string command;
  Machine machine;
  std::vector<Measurement> measurements;
  std::vector<FittedExponent> exponents;                           // of `bench round --over`; not read back
  double unit_seconds = std::numeric_limits<double>::quiet_NaN();  // of ProductUnit; NaN if not measured
};

std::string measurements_json(const MeasurementFile& file);
/// Throws IoError for a file that holds no measurements.
MeasurementFile read_measurements(const std::filesystem::path& file);

/// Where there is a unit, the text also says how many units each takes.
std::string measurements_text(const MeasurementFile& file, std::int64_t columns = 0);

/// A measurement compared with an earlier one of the same identity.
struct SlowDown {
  std::string identity;
  double ratio = 0.0;  // of times, each relative to its ceiling if both have one; above 1 is slower
  double low = 0.0;    // bounds from the spread of both
  double high = 0.0;
};

std::vector<SlowDown> slow_downs(const MeasurementFile& before, const MeasurementFile& now);

/// Whether the ratio exceeds the factor and the spread does not explain it.
bool is_slower(const SlowDown& change, double factor);

std::string slow_downs_text(const std::vector<SlowDown>& changes, double factor);

/// The unit that rounds are compared in across machines: the product of two square float matrices on one
/// thread, measured between the rounds themselves.
class ProductUnit {
 public:
  static constexpr std::int64_t kSide = 1000;
  static constexpr std::string_view kName = "gemm float";

  /// Multiplies, and remembers how long it took.
  void measure(int times = 1);

  /// The median of all measurements, on the clock; NaN without any.
  double seconds() const;

 private:
  std::vector<float> factor_;
  std::vector<float> product_;
  std::vector<double> seconds_;
};

}  // namespace olrank
