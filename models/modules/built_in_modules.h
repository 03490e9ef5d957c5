#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>

#include "core/ops/relu_network.h"
#include "core/throw_error.h"
#include "models/skeleton/module_request.h"

namespace olrank {

/// φ(units).
inline torch::Tensor activate(Activation activation, const torch::Tensor& units) {
  if (activation == Activation::kGelu) return torch::gelu(units);
  if (activation == Activation::kSilu) return torch::silu(units);
  if (activation == Activation::kTanh) return torch::tanh(units);
  return torch::relu(units);
}

inline torch::nn::Linear linear_layer(std::int64_t inputs, std::int64_t units, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, units).bias(bias));
}

/// `attention`: every document attends to all documents of its list before the usual network scores it, as
/// in Pang et al., "SetRank", SIGIR 2020, with one head and without induced points. Documents in another
/// order get the same scores.
class AttentionRanker : public torch::nn::Module {
 public:
  explicit AttentionRanker(const ModuleRequest& request)
      : activation_(request.activation), output_scale_(request.output_scale) {
    const std::int64_t width = request.width;
    input_ = register_module("input", linear_layer(request.features, width, request.biases));
    query_ = register_module("query", linear_layer(width, width, false));
    key_ = register_module("key", linear_layer(width, width, false));
    value_ = register_module("value", linear_layer(width, width, false));
    for (std::int64_t l = 2; l < request.depth; ++l)
      layers_->push_back(linear_layer(width, width, request.biases));
    register_module("layers", layers_);
    output_ = register_module("output", linear_layer(width, 1, request.biases));
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

/// `layernorm`: the usual network with normalised hidden layers, h_l = φ(norm(W_l h_{l−1} + b_l)).
class LayerNormRanker : public torch::nn::Module {
 public:
  explicit LayerNormRanker(const ModuleRequest& request)
      : activation_(request.activation), output_scale_(request.output_scale) {
    for (std::int64_t l = 0; l + 1 < request.depth; ++l) {
      const std::int64_t inputs = l == 0 ? request.features : request.width;
      layers_->push_back(linear_layer(inputs, request.width, request.biases));
      norms_->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({request.width})));
    }
    register_module("layers", layers_);
    register_module("norms", norms_);
    const std::int64_t inputs = request.depth == 1 ? request.features : request.width;
    output_ = register_module("output", linear_layer(inputs, 1, request.biases));
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

/// `residual`: an input layer to m units, blocks h + W₂ φ(W₁ h), an output layer to one score.
class ResidualRanker : public torch::nn::Module {
 public:
  explicit ResidualRanker(const ModuleRequest& request)
      : activation_(request.activation), output_scale_(request.output_scale) {
    input_ = register_module("input", linear_layer(request.features, request.width, request.biases));
    for (std::int64_t block = 0; block + 1 < request.depth; ++block) {
      first_->push_back(linear_layer(request.width, request.width, request.biases));
      second_->push_back(linear_layer(request.width, request.width, request.biases));
    }
    register_module("first", first_);
    register_module("second", second_);
    output_ = register_module("output", linear_layer(request.width, 1, request.biases));
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

/// The network of a NetworkShape as a LibTorch module:
/// f(x) = output_scale · (W_L φ(… φ(W_1 x + b_1) …) + b_L). Its parameters, zeros at first, have the names
/// of model files: layers.0.weight, layers.0.bias if there is one, layers.1.weight, …
class ReluRanker : public torch::nn::Module {
 public:
  explicit ReluRanker(const NetworkShape& shape) : shape_(shape) {
    if (shape.depth < 2) {
      throw_error<InvalidArgument>(
          "A ReLU ranker has at least 2 layers of weights, not {}: choose the linear network for one "
          "layer.",
          shape.depth);
    }
    for (std::int64_t index = 0; index < shape.depth; ++index) {
      const NetworkLayer layer = shape.layer(index);
      layers_->push_back(linear_layer(layer.columns, layer.rows, layer.has_bias()));
    }
    register_module("layers", layers_);
    const torch::NoGradGuard no_gradient;
    for (torch::Tensor& parameter : parameters()) parameter.zero_();
  }

  /// Scores [V] of documents [V × d].
  torch::Tensor forward(const torch::Tensor& docs) {
    torch::Tensor units = docs;
    for (std::size_t index = 0; index < layers_->size(); ++index) {
      units = layers_->at<torch::nn::LinearImpl>(index).forward(units);
      if (index + 1 < layers_->size()) units = torch::relu(units);
    }
    return shape_.output_scale * units.squeeze(1);
  }

 private:
  NetworkShape shape_;
  torch::nn::ModuleList layers_;
};

}  // namespace olrank
