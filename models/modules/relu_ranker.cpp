#include "models/modules/relu_ranker.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace olrank {
namespace {

/// Parameters in the order in which they were registered: weight before bias, layer by layer, as θ has
/// them.
std::vector<float> flat(const torch::nn::Module& module) {
  std::vector<float> theta;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor values = parameter.detach().to(torch::kCPU, torch::kFloat).contiguous();
    theta.insert(theta.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
  }
  return theta;
}

void fill(const torch::nn::Module& module, std::span<const float> theta) {
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

torch::nn::Linear zero_layer(std::int64_t columns, std::int64_t rows, bool bias) {
  torch::nn::Linear layer(torch::nn::LinearOptions(columns, rows).bias(bias));
  const torch::NoGradGuard no_gradient;
  for (torch::Tensor& parameter : layer->parameters()) parameter.zero_();
  return layer;
}

}  // namespace

ReluRanker::ReluRanker(const NetworkShape& shape) : shape_(shape) {
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

torch::Tensor ReluRanker::forward(const torch::Tensor& docs) {
  torch::Tensor units = docs;
  for (std::size_t index = 0; index < layers_->size(); ++index) {
    units = layers_->at<torch::nn::LinearImpl>(index).forward(units);
    if (index + 1 < layers_->size()) units = torch::relu(units);
  }
  return shape_.output_scale * units.squeeze(1);
}

void ReluRanker::set_theta(std::span<const float> theta) {
  fill(*this, theta);
}

std::vector<float> ReluRanker::theta() const {
  return flat(*this);
}

LinearRanker::LinearRanker(std::int64_t features)
    : linear_(register_module("linear", zero_layer(features, 1, false))) {}

torch::Tensor LinearRanker::forward(const torch::Tensor& docs) {
  return linear_->forward(docs).squeeze(1);
}

void LinearRanker::set_theta(std::span<const float> theta) {
  fill(*this, theta);
}

std::vector<float> LinearRanker::theta() const {
  return flat(*this);
}

}  // namespace olrank
