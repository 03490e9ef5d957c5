#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/feature_matrix.h"
#include "models/modules/module_registry.h"

namespace olrank {

/// A module in one precision whose parameters are a flat array. A call uses it alone.
class ModuleInstance {
 public:
  /// `precision` is kDouble or kFloat.
  ModuleInstance(ScoringModule module, torch::Dtype precision) : module_(std::move(module)) {
    const torch::NoGradGuard no_gradient;
    std::int64_t size = 0;
    for (const ScoringModule::Parameter& parameter : module_.parameters) size += parameter.value.numel();
    flat_ = torch::empty({size}, precision);
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
      if (buffer.is_floating_point()) buffer.set_data(buffer.to(precision));
    }
  }

  void set_parameters(std::span<const float> theta) {
    if (flat_.scalar_type() == torch::kDouble) {
      std::copy(theta.begin(), theta.end(), flat_.data_ptr<double>());
    } else {
      std::copy(theta.begin(), theta.end(), flat_.data_ptr<float>());
    }
  }

  /// Documents in the module's precision.
  torch::Tensor documents(FeatureMatrix docs) const {
    return torch::from_blob(const_cast<float*>(docs.values), {docs.docs, docs.features}, torch::kFloat)
        .to(flat_.scalar_type());
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
