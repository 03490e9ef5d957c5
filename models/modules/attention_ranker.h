#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "models/modules/activation.h"

namespace olrank {

/// `attention`: every document attends to all documents of its list before the usual network scores it, as
/// in Pang et al., "SetRank", SIGIR 2020, with one head and without induced points. Documents in another
/// order get the same scores.
class AttentionRanker : public torch::nn::Module {
 public:
  explicit AttentionRanker(const ModuleRequest& request)
      : activation_(request.activation), output_scale_(request.output_scale) {
    using torch::nn::Linear;
    using torch::nn::LinearOptions;
    const auto layer = [&](std::int64_t inputs, std::int64_t units, bool bias) {
      return Linear(LinearOptions(inputs, units).bias(bias));
    };
    const std::int64_t width = request.width;
    input_ = register_module("input", layer(request.features, width, request.biases));
    query_ = register_module("query", layer(width, width, false));
    key_ = register_module("key", layer(width, width, false));
    value_ = register_module("value", layer(width, width, false));
    for (std::int64_t l = 2; l < request.depth; ++l)
      layers_->push_back(layer(width, width, request.biases));
    register_module("layers", layers_);
    output_ = register_module("output", layer(width, 1, request.biases));
  }

  /// Scores [V] of the documents [V × d] of one list.
  torch::Tensor forward(const torch::Tensor& docs) {
    torch::Tensor units = input_->forward(docs);
    const double scale = 1.0 / std::sqrt(static_cast<double>(units.size(1)));
    const torch::Tensor likeness = scale * torch::matmul(query_->forward(units), key_->forward(units).t());
    units = units + torch::matmul(torch::softmax(likeness, 1), value_->forward(units));
    units = activate(activation_, units);
    for (std::size_t l = 0; l < layers_->size(); ++l)
      units = activate(activation_, layers_->at<torch::nn::LinearImpl>(l).forward(units));
    return output_scale_ * output_->forward(units).squeeze(1);
  }

 private:
  Activation activation_;
  double output_scale_;
  torch::nn::Linear input_{nullptr};
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr};
  torch::nn::ModuleList layers_;
  torch::nn::Linear output_{nullptr};
};

}  // namespace olrank
