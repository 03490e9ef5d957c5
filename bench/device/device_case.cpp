#include "bench/device/device_case.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

namespace olrank {
namespace {

/// LibTorch's products round their factors to TF32 while it lives.
class RoundedProducts {
 public:
  RoundedProducts() { at::globalContext().setAllowTF32CuBLAS(true); }
  ~RoundedProducts() { at::globalContext().setAllowTF32CuBLAS(false); }
  RoundedProducts(const RoundedProducts&) = delete;
  RoundedProducts& operator=(const RoundedProducts&) = delete;
};

/// A training step of a wide network, where products take all the time: ours and LibTorch's, which are
/// those of cuBLAS, in float32 and in TF32.
std::vector<DeviceCase> wide_cases(DeviceSizes sizes) {
  sizes.width = sizes.wide;
  sizes.pairs = {*std::max_element(sizes.pairs.begin(), sizes.pairs.end())};
  sizes.members = {1};
  std::map<std::string, DeviceCase> steps;
  for (DeviceCase& one : training_cases(sizes)) {
    one.least_share = 0.0;
    one.least_ratio = 0.0;
    if (one.name == "training/step" || one.name == "training/step_tf32")
      steps.emplace(one.name, std::move(one));
  }
  std::vector<DeviceCase> cases;
  for (auto& [name, one] : steps) {
    if (name == "training/step_tf32") {
      one.prepare = [rounded = one.prepare, plain = steps.at("training/step").prepare](Stream stream) {
        DeviceWork work = rounded(stream);
        const DeviceWork other = plain(stream);
        work.libtorch = [other] {
          const RoundedProducts products;
          other.libtorch();
        };
        return work;
      };
    }
    cases.push_back(one);
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
