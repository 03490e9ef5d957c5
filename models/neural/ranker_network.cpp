#include "models/neural/ranker_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/optimizer_step.h"
#include "core/ops/blas.h"
#include "core/ops/gradient_products.h"
#include "core/runtime/execution_context.h"
#include "models/modules/module_model.h"

namespace olrank {
namespace {

/// m where the width scales covariance and prior, else 1.
double scaling_width(const NetworkSettings& settings) {
  return settings.scaling == WidthScaling::kWidth ? static_cast<double>(settings.width) : 1.0;
}

// Networks of sparse documents: the first layer is computed from the features that are not zero, the others
// as a network of its units. Up to the order of sums equal to the same network of dense documents.

constexpr std::int64_t kUnitsPerTask = 4;  // whose rows of weights stay in the cache over all documents

/// The layers above the first: a network of its units.
NetworkShape upper_shape(const NetworkShape& shape) {
  assert(shape.depth >= 2);
  return {shape.width, shape.width, shape.depth - 1, shape.biases, shape.output_scale};
}

/// units [docs × m] = φ(W_1 x + b_1).
void find_units(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                FeatureMatrix docs, std::span<float> units) {
  const NetworkLayer first = shape.layer(0);
  context.for_blocks(first.rows, kUnitsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const float* weights = theta.data() + first.weight + unit * first.columns;
      const double bias = first.has_bias() ? theta[first.bias + unit] : 0.0;
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        const SparseRow row = docs.sparse_doc(doc);
        double sum = bias;
        for (std::size_t i = 0; i < row.columns.size(); ++i)
          sum += double{weights[row.columns[i]]} * double{row.values[i]};
        units[doc * first.rows + unit] = static_cast<float>(std::max(sum, 0.0));
      }
    }
  });
}

/// Adds the first layer's part of the gradient; `deltas` [docs × m] are ∂f/∂h_1.
void add_first_layer(ExecutionContext& context, const NetworkShape& shape, FeatureMatrix docs,
                     std::span<const float> units, std::span<const float> deltas,
                     std::span<const double> weights, std::span<double> gradient) {
  const NetworkLayer first = shape.layer(0);
  context.for_blocks(first.rows, kUnitsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      double* const sums = gradient.data() + first.weight + unit * first.columns;
      double of_bias = 0.0;
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        const std::int64_t place = doc * first.rows + unit;
        const double slope = units[place] > 0.0F ? weights[doc] * double{deltas[place]} : 0.0;
        if (slope == 0.0) continue;
        of_bias += slope;
        const SparseRow row = docs.sparse_doc(doc);
        for (std::size_t i = 0; i < row.columns.size(); ++i)
          sums[row.columns[i]] += slope * double{row.values[i]};
      }
      if (first.has_bias()) gradient[first.bias + unit] += of_bias;
    }
  });
}

/// score_docs() of sparse documents.
void score_sparse_docs(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                       FeatureMatrix docs, std::span<float> scores) {
  if (halves_cancel(shape, theta.data())) {
    std::fill(scores.begin(), scores.end(), 0.0F);
    return;
  }
  constexpr std::int64_t kDocsAtOnce = 4096;
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto units = scratch.take<float>(std::min(docs.docs, kDocsAtOnce) * shape.width);
  for (std::int64_t first = 0; first < docs.docs; first += kDocsAtOnce) {
    const std::int64_t count = std::min(kDocsAtOnce, docs.docs - first);
    find_units(context, shape, theta, docs.part(first, first + count), units);
    score_docs(context, upper_shape(shape), theta.subspan(shape.layer(1).weight),
               {units.data(), count, shape.width}, scores.subspan(first, count));
  }
}

/// gradient += Σ_i weights[i] ∇_θ f(x_i; θ), with the weights that `weigh` finds from the scores.
void add_sparse_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                         FeatureMatrix docs,
                         FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
                         std::span<double> gradient) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const NetworkShape upper = upper_shape(shape);
  const auto above = static_cast<std::size_t>(shape.layer(1).weight);
  const auto upper_theta = theta.subspan(above);
  const auto units = scratch.take<float>(docs.docs * shape.width);
  const auto factors = scratch.take<float>(docs.docs * upper.factors());
  const auto deltas = scratch.take<float>(docs.docs * shape.width);
  const auto scores = scratch.take<float>(docs.docs);
  const auto weights = scratch.take<double>(docs.docs);
  const auto sum = scratch.take<double>(upper_theta.size());
  find_units(context, shape, theta, docs, units);
  tangent_factors(context, upper, upper_theta, {units.data(), docs.docs, shape.width}, factors, scores);
  if (halves_cancel(shape, theta.data())) std::fill(scores.begin(), scores.end(), 0.0F);
  weigh(scores, weights);
  gradient_sum(context, upper, {factors.data(), docs.docs}, weights, sum);
  for (std::size_t k = 0; k < sum.size(); ++k) gradient[above + k] += sum[k];
  const NetworkLayer second = upper.layer(0);
  blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, docs.docs, second.columns, second.rows, 1.0F,
             factors.data() + second.delta, upper.factors(), upper_theta.data() + second.weight,
             second.columns, 0.0F, deltas.data(), second.columns);
  add_first_layer(context, shape, docs, units, deltas, weights, gradient);
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
    held.module_file = load_module_file(settings.module);
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
  request.file = settings.module_file;
  return open_module(request, gpu);
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

double NetworkModel::find_curvature(ExecutionContext& context, std::span<const float> theta,
                                    FeatureMatrix docs, std::span<const PairTerm> terms,
                                    std::span<double> vector) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto factors = scratch.take<float>(docs.docs * shape_.factors());
  tangent_factors(context, shape_, theta, docs, factors);
  return largest_curvature(context, tangent_shape_, {factors.data(), docs.docs}, terms, vector);
}

}  // namespace olrank
