#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/device_case.h"
#include "bench/measurement_file.h"

namespace olrank {

/// A device reaches these rates per second, in bytes read and written and in operations.
struct PeakRates {
  double copy = 0.0;         // of a large copy
  double gemm_float = 0.0;   // in float32
  double gemm_tf32 = 0.0;    // on tensor cores, if the device has them
  double gemm_double = 0.0;  // on tensor cores, too
};

/// The device's peak rates, measured in this process.
class DeviceCeilings {
 public:
  /// Warms the device up first, because an idle one runs at a fraction of its clock. `sizes` says which
  /// device.
  static DeviceCeilings measured(const DeviceSizes& sizes);

  /// The ceiling that limits a case, given its operations and bytes.
  struct Binding {
    std::string name;
    double value = 0.0;       // per second
    double least_time = 0.0;  // seconds at the ceiling
  };
  Binding binding(const DeviceCase& work);

  const PeakRates& rates() const { return rates_; }

 private:
  /// The rate of a copy of this size: the data of small cases fits into the device's cache.
  double copy_of(double bytes);

  explicit DeviceCeilings(const DeviceSizes& sizes) : sizes_(sizes) {}

  DeviceSizes sizes_;
  PeakRates rates_;
  std::map<long long, double> small_copies_;
};

/// A target and its measured value.
struct Verdict {
  std::string what;  // "share of gemm float", "times LibTorch", "N = 10 over N = 1"
  double measured = 0.0;
  double wanted = 0.0;
  bool at_most = false;  // else at least

  bool ok() const { return at_most ? measured <= wanted : measured >= wanted; }
};

struct DeviceRow {
  Measurement measurement;
  Spread libtorch;            // replayed as a graph, like ours; no repeats if there is no LibTorch form
  bool captured = true;       // false: the calls cannot be captured, so they were started one by one
  double disagreement = 0.0;  // between the two results
  std::vector<Verdict> verdicts;

  double ratio() const { return libtorch.median / measurement.seconds.median; }
};

/// Adds targets for N members' time relative to one member's, for training steps measured with both.
void check_member_targets(std::vector<DeviceRow>& rows);

std::string device_table(const std::vector<DeviceRow>& rows);

struct DeviceDescription {
  std::string name;
  PeakRates rates;
  std::optional<PeakRates> rates_at_end;  // once everything is measured: a hot device may be slower
};

/// The file format of `olrank bench`, extended by LibTorch's seconds and the targets.
std::string device_json(const std::string& command, const DeviceDescription& device,
                        const std::vector<DeviceRow>& rows);

}  // namespace olrank
