#pragma once

#include <map>
#include <string>

#include "bench/device/device_case.h"

namespace olrank {

/// The device's peak rates, measured in this process.
class DeviceCeilings {
 public:
  /// Warms the device up first, because an idle one runs at a fraction of its clock.
  static DeviceCeilings measured();

  /// The ceiling that limits a case, given its operations and bytes.
  struct Binding {
    std::string name;
    double value = 0.0;       // per second
    double least_time = 0.0;  // seconds at the ceiling
  };
  Binding binding(const DeviceCase& work);

  double copy() const { return copy_; }
  double gemm_float() const { return gemm_float_; }
  double gemm_tf32() const { return gemm_tf32_; }
  double gemm_double() const { return gemm_double_; }

 private:
  Binding products_of(Arithmetic arithmetic) const;  // without a time
  /// The rate of a copy of this size: the data of small cases fits into the device's cache.
  double copy_of(double bytes);

  double copy_ = 0.0;         // bytes read and written per second, of a large copy
  double gemm_float_ = 0.0;   // operations per second, in float32
  double gemm_tf32_ = 0.0;    // from factors rounded to TF32
  double gemm_double_ = 0.0;  // on tensor cores if the device has them
  std::map<long long, double> small_copies_;
};

}  // namespace olrank
