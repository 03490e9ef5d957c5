#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/feature_matrix.h"
#include "models/modules/module_registry.h"

namespace olrank {

/// Numbers of the host as tensors, which are only read.
template <class Number>
torch::Tensor on_host(std::span<const Number> values) {
  return torch::from_blob(const_cast<Number*>(values.data()), {std::ssize(values)},
                          c10::CppTypeToScalarType<Number>::value);
}
inline torch::Tensor on_host(FeatureMatrix docs) {
  return torch::from_blob(const_cast<float*>(docs.values), {docs.docs, docs.features}, torch::kFloat);
}

/// A module in one precision, on one device, whose parameters are a flat array. A call uses it alone.
class ModuleInstance {
 public:
  /// `precision` is kDouble or kFloat.
  ModuleInstance(ScoringModule module, torch::Dtype precision, torch::Device device = torch::kCPU)
      : module_(std::move(module)) {
    const torch::NoGradGuard no_gradient;
    std::int64_t size = 0;
    for (const ScoringModule::Parameter& parameter : module_.parameters) size += parameter.value.numel();
    flat_ = torch::empty({size}, torch::dtype(precision).device(device));
    std::int64_t place = 0;
    for (ScoringModule::Parameter& parameter : module_.parameters) {
      const torch::Tensor view =
          flat_.narrow(0, place, parameter.value.numel()).view(parameter.value.sizes());
      view.copy_(parameter.value);
      parameter.value.set_data(view);
      parameters_.push_back(parameter.value);
      place += parameter.value.numel();
    }
    for (torch::Tensor& buffer : module_.buffers) {
      const torch::Tensor here =
          buffer.to(device, buffer.is_floating_point() ? precision : buffer.scalar_type());
      if (!here.is_same(buffer)) buffer.set_data(here);
    }
  }

  void set_parameters(std::span<const float> theta) {
    if (!flat_.is_cpu()) {
      flat_.copy_(on_host(theta));
    } else if (flat_.scalar_type() == torch::kDouble) {
      std::copy(theta.begin(), theta.end(), flat_.data_ptr<double>());
    } else {
      std::copy(theta.begin(), theta.end(), flat_.data_ptr<float>());
    }
  }

  /// Documents in the module's precision, on its device.
  torch::Tensor documents(FeatureMatrix docs) const { return here(on_host(docs)); }
  /// Numbers in the module's precision, on its device.
  torch::Tensor here(const torch::Tensor& values) const {
    return values.to(flat_.device()).to(flat_.scalar_type());  // fewer bytes on the way
  }
  torch::Tensor forward(const torch::Tensor& docs) { return module_.forward(docs); }

  std::span<const torch::Tensor> parameters() const { return parameters_; }
  const torch::Tensor& flat() const { return flat_; }
  const ScoringModule& module() const { return module_; }

 private:
  ScoringModule module_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> parameters_;
};

}  // namespace olrank
