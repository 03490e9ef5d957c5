#include "models/neural/ranker_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/math/step_size.h"
#include "core/ops/gradient_products.h"
#include "core/ops/largest_curvature.h"
#include "models/modules/module_model.h"
#include "models/neural/sparse_network.h"

namespace olrank {
namespace {

/// m where the width scales covariance and prior, else 1.
double scaling_width(const NetworkSettings& settings) {
  return settings.scaling == WidthScaling::kWidth ? static_cast<double>(settings.width) : 1.0;
}

}  // namespace

void set_recommended_network(RankerSettings& settings, const RankerSettings& chosen) {
  settings.network.parameterisation = Parameterisation::kStandard;
  settings.network.initialisation = FirstDraw::kSymmetric;
  settings.network.scaling = WidthScaling::kNone;
  // A model from labels knows more than the first clicks say.
  settings.posterior.lambda = chosen.start_from.empty() ? 20.0 : 1000.0;
  // Mini-batches have neither weights nor momentum.
  const bool is_sum = chosen.trainer.loss == LossForm::kSum;
  settings.feedback.pairs = is_sum ? PairRule::kExpected : PairRule::kMatched;
  if (is_sum) settings.trainer.optimizer = Optimizer::kNesterov;
}

std::vector<float> first_parameters(const NetworkSettings& settings, const NetworkShape& shape,
                                    PhiloxKey key) {
  std::vector<float> theta(shape.parameters());
  initialise(shape, initialisation_of(settings), key, theta);
  return theta;
}

double covariance_scale(const NetworkSettings& settings) {
  return 1.0 / scaling_width(settings);
}

PosteriorSpec posterior_spec(const RankerSettings& settings, const TangentShape& shape) {
  const PosteriorSettings& posterior = settings.posterior;
  PosteriorSpec spec;
  spec.shape = shape;
  spec.form = posterior.form;
  spec.budget = posterior.budget;
  spec.lambda = posterior.lambda;
  spec.scale = covariance_scale(settings.network);
  if (row_of(settings.kind).is_ensemble()) {
    spec.covariance = Covariance::kNone;
  } else {
    spec.covariance = posterior.covariance;
    spec.has_shadow = posterior.has_shadow();
  }
  return spec;
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

bool has_module_file(const NetworkSettings& settings) {
  return settings.network == NetworkForm::kModule && is_module_file(settings.module);
}

NetworkSettings with_module_file(const NetworkSettings& settings) {
  NetworkSettings held = settings;
  if (has_module_file(settings) && !settings.module_file)
    held.module_file = load_module_file(settings.module, settings.module_state);
  return held;
}

std::unique_ptr<ModuleModel> make_module_model(const NetworkSettings& settings, std::int64_t features,
                                               std::optional<int> gpu) {
  ModuleRequest request;
  request.module = settings.module;
  request.features = features;
  request.width = settings.width;
  request.depth = settings.depth;
  request.activation = settings.activation;
  request.biases = settings.parameterisation == Parameterisation::kStandard;
  request.output_scale = output_scale_of(settings);
  request.symmetric = initialisation_of(settings) == Initialisation::kSymmetric;
  request.state = settings.module_state;
  request.file = settings.module_file;
  return std::make_unique<ModuleModel>(request, gpu);
}

std::unique_ptr<TangentModel> make_tangent_model(const NetworkSettings& settings, std::int64_t features,
                                                 std::optional<int> gpu) {
  if (settings.network != NetworkForm::kModule) return std::make_unique<NetworkModel>(settings, features);
  return make_module_model(settings, features, gpu);
}

ModelSize model_size(const NetworkSettings& settings, std::int64_t features) {
  if (settings.network != NetworkForm::kModule) return {features, network_shape(settings, features)};
  const auto model = make_module_model(settings, features);
  return {features, model->tangent_shape(), model->reads_lists()};
}

NetworkModel::NetworkModel(const NetworkSettings& settings, std::int64_t features)
    : settings_(settings), shape_(network_shape(settings, features)), tangent_shape_(shape_) {}

/// A layer multiplies magnitudes by at most its columns, bias included, times its largest parameter.
double NetworkModel::largest_parameter() const {
  const double gain = largest_finite_gain() / std::max(1.0, double{shape_.output_scale});
  const auto columns = static_cast<double>(std::max(shape_.inputs, shape_.width) + 1);
  return std::pow(gain, 1.0 / static_cast<double>(shape_.depth)) / columns;
}

void NetworkModel::score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                         std::span<float> scores) const {
  if (docs.is_sparse()) return score_sparse_docs(context, shape_, theta, docs, scores);
  score_docs(context, shape_, theta, docs, scores);
}

void NetworkModel::add_gradient_of_scores(
    ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
    FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
    std::span<double> gradient) const {
  if (docs.is_sparse()) return add_sparse_gradient(context, shape_, theta, docs, weigh, gradient);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto factors = scratch.take<float>(docs.docs * shape_.factors());
  const auto sum = scratch.take<double>(gradient.size());
  const auto scores = scratch.take<float>(docs.docs);
  const auto weights = scratch.take<double>(docs.docs);
  tangent_factors(context, shape_, theta, docs, factors, scores);
  weigh(scores, weights);
  gradient_sum(context, tangent_shape_, {factors.data(), docs.docs}, weights, sum);
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += sum[k];
}

std::vector<float> NetworkModel::first_parameters(PhiloxKey key) const {
  return olrank::first_parameters(settings_, shape_, key);
}

void NetworkModel::score_with_magnitudes(ExecutionContext& context, std::span<const float> theta,
                                         FeatureMatrix docs, std::span<float> scores,
                                         std::span<float> magnitudes) const {
  score_docs(context, shape_, theta, docs, scores, magnitudes);
}

void NetworkModel::find_factors(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                                std::span<float> factors, std::span<float> scores,
                                std::span<float> magnitudes) const {
  tangent_factors(context, shape_, theta, docs, factors, scores, magnitudes);
}

void NetworkModel::multiply_gradients(ExecutionContext& context, std::span<const float> theta,
                                      FeatureMatrix docs, std::span<const double> v,
                                      std::span<double> products) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto factors = scratch.take<float>(docs.docs * shape_.factors());
  tangent_factors(context, shape_, theta, docs, factors);
  gradient_products(context, tangent_shape_, {factors.data(), docs.docs}, v, products);
}

void NetworkModel::find_score_gradient(ExecutionContext& context, std::span<const float> theta,
                                       FeatureMatrix docs, ScoreSlopes find_slopes,
                                       std::span<double> gradient) const {
  if (docs.is_sparse()) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    return add_sparse_gradient(context, shape_, theta, docs, find_slopes, gradient);
  }
  score_gradient(context, shape_, theta, docs, find_slopes, 1.0, gradient);
}

double NetworkModel::find_loss_gradient(ExecutionContext& context, std::span<const float> theta,
                                        FeatureMatrix docs, std::span<const PairTerm> terms,
                                        const PairObjective& objective, std::span<double> gradient) const {
  return pair_loss_gradient(context, shape_, theta, docs, terms, objective, gradient);
}

void NetworkModel::find_gradient(ExecutionContext& context, std::span<const float> theta,
                                 FeatureMatrix docs, std::span<const PairTerm> terms,
                                 const PairObjective& objective, std::span<double> gradient) const {
  pair_gradient(context, shape_, theta, docs, terms, objective, gradient);
}

double NetworkModel::find_loss(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                               std::span<const PairTerm> terms, const PairObjective& objective) const {
  return pair_loss(context, shape_, theta, docs, terms, objective);
}

double NetworkModel::find_curvature(ExecutionContext& context, std::span<const float> theta,
                                    FeatureMatrix docs, std::span<const PairTerm> terms,
                                    std::span<double> vector) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto factors = scratch.take<float>(docs.docs * shape_.factors());
  tangent_factors(context, shape_, theta, docs, factors);
  return largest_curvature(context, tangent_shape_, {factors.data(), docs.docs}, terms, vector);
}

ModelTensors NetworkModel::tensors(std::span<const float> theta) const {
  return network_tensors(settings_, shape_, theta);
}

}  // namespace olrank
