#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "models/modules/activation.h"

namespace olrank {

/// `layernorm`: the usual network with normalised hidden layers, h_l = φ(norm(W_l h_{l−1} + b_l)).
class LayerNormRanker : public torch::nn::Module {
 public:
  explicit LayerNormRanker(const ModuleRequest& request)
      : activation_(request.activation), output_scale_(request.output_scale) {
    using torch::nn::LayerNorm;
    using torch::nn::LayerNormOptions;
    using torch::nn::Linear;
    using torch::nn::LinearOptions;
    for (std::int64_t l = 0; l + 1 < request.depth; ++l) {
      const std::int64_t inputs = l == 0 ? request.features : request.width;
      layers_->push_back(Linear(LinearOptions(inputs, request.width).bias(request.biases)));
      norms_->push_back(LayerNorm(LayerNormOptions({request.width})));
    }
    register_module("layers", layers_);
    register_module("norms", norms_);
    const std::int64_t inputs = request.depth == 1 ? request.features : request.width;
    output_ = register_module("output", Linear(LinearOptions(inputs, 1).bias(request.biases)));
  }

  /// Scores [V] of documents [V × d].
  torch::Tensor forward(const torch::Tensor& docs) {
    torch::Tensor units = docs;
    for (std::size_t l = 0; l < layers_->size(); ++l) {
      units = layers_->at<torch::nn::LinearImpl>(l).forward(units);
      units = activate(activation_, norms_->at<torch::nn::LayerNormImpl>(l).forward(units));
    }
    return output_scale_ * output_->forward(units).squeeze(1);
  }

 private:
  Activation activation_;
  double output_scale_;
  torch::nn::ModuleList layers_;
  torch::nn::ModuleList norms_;
  torch::nn::Linear output_{nullptr};
};

}  // namespace olrank
