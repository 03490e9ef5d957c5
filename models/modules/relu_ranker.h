#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/relu_network.h"

namespace olrank {

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

}  // namespace olrank
