#include "bench/device/device_case.h"

#include <algorithm>
#include <utility>

namespace olrank {
namespace {

/// A training step of a wide network, where products take all the time: ours and LibTorch's, which are
/// those of cuBLAS.
std::vector<DeviceCase> wide_cases(DeviceSizes sizes) {
  sizes.width = sizes.wide;
  sizes.pairs = {*std::max_element(sizes.pairs.begin(), sizes.pairs.end())};
  sizes.members = {1};
  std::vector<DeviceCase> cases;
  for (DeviceCase& one : training_cases(sizes)) {
    if (one.name != "training/step") continue;
    one.least_share = 0.0;
    one.least_ratio = 0.0;
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace

std::vector<DeviceCase> device_cases(const DeviceSizes& sizes) {
  std::vector<DeviceCase> cases = ranking_cases(sizes);
  for (auto* more : {diagonal_cases, dual_cases, primal_cases, rebuild_cases, training_cases,
                     persistent_cases, small_cases}) {
    for (DeviceCase& one : more(sizes)) cases.push_back(std::move(one));
  }
  for (DeviceCase& one : wide_cases(sizes)) cases.push_back(std::move(one));
  return cases;
}

}  // namespace olrank
