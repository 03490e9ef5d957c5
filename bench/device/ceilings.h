#pragma once

#include <map>
#include <string>

#include "bench/device/device_case.h"

namespace olrank {

/// What a device reaches per second, in bytes read and written and in operations.
struct PeakRates {
  double copy = 0.0;         // of a large copy
  double gemm_float = 0.0;   // in float32
  double gemm_double = 0.0;  // on tensor cores if the device has them
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

}  // namespace olrank
