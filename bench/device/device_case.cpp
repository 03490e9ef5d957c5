#include "bench/device/device_case.h"

namespace olrank {

std::vector<DeviceCase> device_cases(const DeviceSizes& sizes) {
  std::vector<DeviceCase> cases = ranking_cases(sizes);
  for (auto* more :
       {diagonal_cases, dual_cases, primal_cases, training_cases, persistent_cases, small_cases}) {
    for (DeviceCase& one : more(sizes)) cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace olrank
