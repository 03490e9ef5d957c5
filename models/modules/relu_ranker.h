#pragma once

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/ops/relu_network.h"

namespace olrank {

/// Parameters in the order in which they were registered: weight before bias, layer by layer, as θ has
/// them.
inline std::vector<float> flat_theta(const torch::nn::Module& module) {
  std::vector<float> theta;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor values = parameter.detach().to(torch::kCPU, torch::kFloat).contiguous();
    theta.insert(theta.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
  }
  return theta;
}

inline void fill_theta(const torch::nn::Module& module, std::span<const float> theta) {
  std::int64_t needed = 0;
  for (const torch::Tensor& parameter : module.parameters()) needed += parameter.numel();
  if (needed != std::ssize(theta)) {
    throw InvalidArgument(
        fmt::format("The module has {} parameters and θ has {}: load the θ of a model of this shape.",
                    needed, theta.size()));
  }
  const torch::NoGradGuard no_gradient;
  const float* next = theta.data();
  for (torch::Tensor& parameter : module.parameters()) {
    // Only read from.
    parameter.copy_(torch::from_blob(const_cast<float*>(next), parameter.sizes(), torch::kFloat));
    next += parameter.numel();
  }
}

inline torch::nn::Linear zero_layer(std::int64_t columns, std::int64_t rows, bool bias) {
  torch::nn::Linear layer(torch::nn::LinearOptions(columns, rows).bias(bias));
  const torch::NoGradGuard no_gradient;
  for (torch::Tensor& parameter : layer->parameters()) parameter.zero_();
  return layer;
}

/// The network of a NetworkShape as a LibTorch module, for programs that train or export with LibTorch:
/// f(x) = output_scale · (W_L φ(… φ(W_1 x + b_1) …) + b_L). Its parameters have the names of model files:
/// layers.0.weight, layers.0.bias if there is one, layers.1.weight, … Rankers do not compute with it; its
/// scores are those of score_docs() up to rounding.
class ReluRanker : public torch::nn::Module {
 public:
  /// Parameters are zero until set_theta(). Throws InvalidArgument for a shape without a hidden layer.
  explicit ReluRanker(const NetworkShape& shape);

  const NetworkShape& shape() const { return shape_; }
  /// Scores [V] of documents [V × d].
  torch::Tensor forward(const torch::Tensor& docs);

  /// From and to the flat θ: layer 1's weight, its bias, layer 2 … Throws InvalidArgument for another size.
  void set_theta(std::span<const float> theta);
  std::vector<float> theta() const;

 private:
  NetworkShape shape_;
  torch::nn::ModuleList layers_;
};

/// f(x) = θ·x as a module; its parameter is linear.weight [1 × d].
class LinearRanker : public torch::nn::Module {
 public:
  explicit LinearRanker(std::int64_t features);

  torch::Tensor forward(const torch::Tensor& docs);
  void set_theta(std::span<const float> theta);
  std::vector<float> theta() const;

 private:
  torch::nn::Linear linear_;
};

inline ReluRanker::ReluRanker(const NetworkShape& shape) : shape_(shape) {
  if (shape.depth < 2) {
    throw InvalidArgument(
        fmt::format("A ReLU ranker has at least 2 layers of weights, not {}: use LinearRanker for a linear "
                    "model.",
                    shape.depth));
  }
  for (std::int64_t index = 0; index < shape.depth; ++index) {
    const NetworkLayer layer = shape.layer(index);
    layers_->push_back(zero_layer(layer.columns, layer.rows, layer.has_bias()));
  }
  register_module("layers", layers_);
}

inline torch::Tensor ReluRanker::forward(const torch::Tensor& docs) {
  torch::Tensor units = docs;
  for (std::size_t index = 0; index < layers_->size(); ++index) {
    units = layers_->at<torch::nn::LinearImpl>(index).forward(units);
    if (index + 1 < layers_->size()) units = torch::relu(units);
  }
  return shape_.output_scale * units.squeeze(1);
}

inline void ReluRanker::set_theta(std::span<const float> theta) {
  fill_theta(*this, theta);
}

inline std::vector<float> ReluRanker::theta() const {
  return flat_theta(*this);
}

inline LinearRanker::LinearRanker(std::int64_t features)
    : linear_(register_module("linear", zero_layer(features, 1, false))) {}

inline torch::Tensor LinearRanker::forward(const torch::Tensor& docs) {
  return linear_->forward(docs).squeeze(1);
}

inline void LinearRanker::set_theta(std::span<const float> theta) {
  fill_theta(*this, theta);
}

inline std::vector<float> LinearRanker::theta() const {
  return flat_theta(*this);
}

}  // namespace olrank
