#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/online/online_ranker.h"
#include "core/ops/pair_training.h"
#include "core/ops/relu_network.h"
#include "core/ops/tangent_factors.h"
#include "models/skeleton/network_settings.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

class ModuleModel;

/// The form of the network, its prior, its training and its pairs under protocol `recommended`, where some
/// settings are chosen: docs/evidence/DEFAULTS.md.
void set_recommended_network(RankerSettings& settings, const RankerSettings& chosen);

/// θ₀, drawn by initialisation_of(); `key` is of Purpose::kInitialisation.
std::vector<float> first_parameters(const NetworkSettings& settings, const NetworkShape& shape,
                                    PhiloxKey key);

/// s of A = λI + s Σ g gᵀ, by `scaling`.
double covariance_scale(const NetworkSettings& settings);
/// The posterior of these settings over gradients with this shape; an ensemble has no covariance.
PosteriorSpec posterior_spec(const RankerSettings& settings, const TangentShape& shape);
/// ½mλ, the weight of the prior ‖θ − θ₀‖², with m = 1 unless `scaling` says otherwise.
double prior_weight(const NetworkSettings& settings, double lambda);

/// θ as named tensors, layer by layer: "layers.0.weight", "layers.0.bias", …
ModelTensors network_tensors(const NetworkSettings& settings, const NetworkShape& shape,
                             std::span<const float> theta);

/// Whether the settings name a TorchScript file.
bool has_module_file(const NetworkSettings& settings);
/// Settings that hold the file which they name, so that all their networks are of the same one.
NetworkSettings with_module_file(const NetworkSettings& settings);
/// The module that the settings name, on the CPU or on a GPU as LibTorch numbers them.
std::unique_ptr<ModuleModel> make_module_model(const NetworkSettings& settings, std::int64_t features,
                                               std::optional<int> gpu = std::nullopt);
/// The network of these settings; a LibTorch module where they name one.
std::unique_ptr<TangentModel> make_tangent_model(const NetworkSettings& settings, std::int64_t features,
                                                 std::optional<int> gpu = std::nullopt);

/// The sizes of a scoring function.
struct ModelSize {
  std::int64_t inputs = 0;  // d
  TangentShape tangents;
  bool reads_lists = false;

  std::int64_t parameters() const { return tangents.parameters(); }
  /// Numbers of a document while the history is trained on, next to its inputs. Lists that are read as a
  /// whole pass one by one, so that only the scores and weights of all are held.
  std::int64_t arrays_of_pass() const { return reads_lists ? 4 : 2 * tangents.factors(); }
};

ModelSize model_size(const NetworkSettings& settings, std::int64_t features);

/// The network of these settings, computed in closed form.
class NetworkModel : public TangentModel {
 public:
  NetworkModel(const NetworkSettings& settings, std::int64_t features);

  const NetworkShape& shape() const { return shape_; }
  std::int64_t features() const override { return shape_.inputs; }
  std::int64_t parameters() const override { return shape_.parameters(); }
  double largest_parameter() const override;
  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override;
  void add_gradient_of_scores(
      ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
      FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
      std::span<double> gradient) const override;
  ModelTensors tensors(std::span<const float> theta) const override {
    return network_tensors(settings_, shape_, theta);
  }

  const TangentShape& tangent_shape() const override { return tangent_shape_; }
  std::vector<float> first_parameters(PhiloxKey key) const override {
    return olrank::first_parameters(settings_, shape_, key);
  }
  void score_with_magnitudes(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                             std::span<float> scores, std::span<float> magnitudes) const override {
    score_docs(context, shape_, theta, docs, scores, magnitudes);
  }
  void find_factors(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<float> factors, std::span<float> scores,
                    std::span<float> magnitudes) const override {
    tangent_factors(context, shape_, theta, docs, factors, scores, magnitudes);
  }
  void multiply_gradients(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                          std::span<const double> v, std::span<double> products) const override;
  void find_score_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                           ScoreSlopes find_slopes, std::span<double> gradient) const override;
  double find_loss_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                            std::span<const PairTerm> terms, const PairObjective& objective,
                            std::span<double> gradient) const override {
    return pair_loss_gradient(context, shape_, theta, docs, terms, objective, gradient);
  }
  void find_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                     std::span<const PairTerm> terms, const PairObjective& objective,
                     std::span<double> gradient) const override {
    pair_gradient(context, shape_, theta, docs, terms, objective, gradient);
  }
  double find_loss(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                   std::span<const PairTerm> terms, const PairObjective& objective) const override {
    return pair_loss(context, shape_, theta, docs, terms, objective);
  }
  double find_curvature(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                        std::span<const PairTerm> terms, std::span<double> vector) const override;

 private:
  NetworkSettings settings_;
  NetworkShape shape_;
  TangentShape tangent_shape_;
};

}  // namespace olrank
