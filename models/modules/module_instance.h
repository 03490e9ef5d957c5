#pragma once

#include <cstdint>
#include <functional>
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
  /// `precision` is kDouble or kFloat. With `state` kReset, each call of forward() starts from the buffers
  /// and attributes that the module has now.
  ModuleInstance(ScoringModule module, torch::Dtype precision, ModuleState state,
                 torch::Device device = torch::kCPU)
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
    for (auto& [name, buffer] : module_.buffers) {
      const torch::Tensor here =
          buffer.to(device, buffer.is_floating_point() ? precision : buffer.scalar_type());
      if (!here.is_same(buffer)) buffer.set_data(here);
    }
    if (state == ModuleState::kReset) reset_ = module_.remember ? module_.remember() : kept_buffers();
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
  torch::Tensor forward(const torch::Tensor& docs) {
    if (reset_) reset_();
    return module_.forward(docs);
  }

  std::span<const torch::Tensor> parameters() const { return parameters_; }
  const torch::Tensor& flat() const { return flat_; }
  const ScoringModule& module() const { return module_; }

 private:
  std::function<void()> kept_buffers() const {
    std::vector<torch::Tensor> kept;
    for (const auto& [name, buffer] : module_.buffers) kept.push_back(buffer.clone());
    return [buffers = module_.buffers, kept = std::move(kept)] {
      for (std::size_t k = 0; k < kept.size(); ++k) buffers[k].value.set_data(kept[k].clone());
    };
  }

  ScoringModule module_;
  std::function<void()> reset_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> parameters_;
};

}  // namespace olrank
