#include "models/neural/ranker_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/math/step_size.h"
#include "core/ops/gradient_products.h"

namespace olrank {
namespace {

/// m where the width scales covariance and prior, else 1.
double scaling_width(const NetworkSettings& settings) {
  return settings.scaling == WidthScaling::kWidth ? static_cast<double>(settings.width) : 1.0;
}

}  // namespace

std::vector<float> first_parameters(const NetworkSettings& settings, const NetworkShape& shape,
                                    PhiloxKey key) {
  std::vector<float> theta(shape.parameters());
  initialise(shape, initialisation_of(settings), key, theta);
  return theta;
}

double covariance_scale(const NetworkSettings& settings) {
  return 1.0 / scaling_width(settings);
}

double prior_weight(const NetworkSettings& settings, double lambda) {
  return prior_weight_of(scaling_width(settings), lambda);
}

ModelTensors network_tensors(const NetworkSettings& settings, const NetworkShape& shape,
                             std::span<const float> theta) {
  ModelTensors model;
  model.architecture = {{"architecture", "relu"},
                        {"width", fmt::format("{}", settings.width)},
                        {"depth", fmt::format("{}", settings.depth)},
                        {"parameterisation", std::string(name_of(settings.parameterisation))},
                        {"output_scale", fmt::format("{}", shape.output_scale)}};
  for (std::int64_t index = 0; index < shape.depth; ++index) {
    const NetworkLayer layer = shape.layer(index);
    const float* weight = theta.data() + layer.weight;
    model.tensors.push_back({fmt::format("layers.{}.weight", index),
                             {layer.rows, layer.columns},
                             {weight, weight + layer.rows * layer.columns}});
    if (!layer.has_bias()) continue;
    const float* bias = theta.data() + layer.bias;
    model.tensors.push_back(
        {fmt::format("layers.{}.bias", index), {layer.rows}, {bias, bias + layer.rows}});
  }
  return model;
}

NetworkModel::NetworkModel(const NetworkSettings& settings, std::int64_t features)
    : settings_(settings), shape_(network_shape(settings, features)) {}

/// A layer multiplies magnitudes by at most its columns, bias included, times its largest parameter.
double NetworkModel::largest_parameter() const {
  const double gain = largest_finite_gain() / std::max(1.0, double{shape_.output_scale});
  const auto columns = static_cast<double>(std::max(shape_.inputs, shape_.width) + 1);
  return std::pow(gain, 1.0 / static_cast<double>(shape_.depth)) / columns;
}

void NetworkModel::score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                         std::span<float> scores) const {
  score_docs(context, shape_, theta, docs, scores);
}

void NetworkModel::add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                                std::span<const double> weights, std::span<double> gradient) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto factors = scratch.take<float>(docs.docs * shape_.factors());
  const auto sum = scratch.take<double>(gradient.size());
  tangent_factors(context, shape_, theta, docs, factors);
  gradient_sum(context, shape_, {factors.data(), docs.docs}, weights, sum);
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += sum[k];
}

ModelTensors NetworkModel::tensors(std::span<const float> theta) const {
  return network_tensors(settings_, shape_, theta);
}

}  // namespace olrank
