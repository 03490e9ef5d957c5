#pragma once

#include <map>
#include <string>

#include "bench/device/device_case.h"

namespace olrank {

/// What a device reaches at best, measured in this process.
class DeviceCeilings {
 public:
  /// Warms the device up first, as an idle one runs at a fraction of its clock.
  static DeviceCeilings measured();

  /// The ceiling that binds work of so many operations and bytes.
  struct Binding {
    std::string name;
    double value = 0.0;       // a second
    double least_time = 0.0;  // that the work takes
  };
  Binding binding(const DeviceCase& work);

  double copy() const { return copy_; }
  double gemm_float() const { return gemm_float_; }
  double gemm_tf32() const { return gemm_tf32_; }
  double gemm_double() const { return gemm_double_; }

 private:
  Binding products_of(Arithmetic arithmetic) const;  // without a time
  /// What little work reads and writes lies in the device's cache, and so do copies of that size.
  double copy_of(double bytes);

  double copy_ = 0.0;         // bytes read and written a second, of a large copy
  double gemm_float_ = 0.0;   // operations a second, in float32 proper
  double gemm_tf32_ = 0.0;    // in float32 from factors rounded to TF32
  double gemm_double_ = 0.0;  // on tensor cores where there are some
  std::map<long long, double> small_copies_;
};

}  // namespace olrank
