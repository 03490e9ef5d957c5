#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include "models/modules/activation.h"

namespace olrank {

/// `residual`: an input layer to m units, blocks h + W₂ φ(W₁ h), an output layer to one score.
class ResidualRanker : public torch::nn::Module {
 public:
  explicit ResidualRanker(const ModuleRequest& request)
      : activation_(request.activation), output_scale_(request.output_scale) {
    using torch::nn::Linear;
    using torch::nn::LinearOptions;
    const auto layer = [&](std::int64_t inputs, std::int64_t units) {
      return Linear(LinearOptions(inputs, units).bias(request.biases));
    };
    input_ = register_module("input", layer(request.features, request.width));
    for (std::int64_t block = 0; block + 1 < request.depth; ++block) {
      first_->push_back(layer(request.width, request.width));
      second_->push_back(layer(request.width, request.width));
    }
    register_module("first", first_);
    register_module("second", second_);
    output_ = register_module("output", layer(request.width, 1));
  }

  /// Scores [V] of documents [V × d].
  torch::Tensor forward(const torch::Tensor& docs) {
    torch::Tensor units = input_->forward(docs);
    for (std::size_t block = 0; block < first_->size(); ++block) {
      const torch::Tensor inner = first_->at<torch::nn::LinearImpl>(block).forward(units);
      units = units + second_->at<torch::nn::LinearImpl>(block).forward(activate(activation_, inner));
    }
    return output_scale_ * output_->forward(units).squeeze(1);
  }

 private:
  Activation activation_;
  double output_scale_;
  torch::nn::Linear input_{nullptr};
  torch::nn::ModuleList first_;   // W₁ of each block
  torch::nn::ModuleList second_;  // W₂
  torch::nn::Linear output_{nullptr};
};

}  // namespace olrank
