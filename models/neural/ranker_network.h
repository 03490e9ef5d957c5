#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/online/online_ranker.h"
#include "core/ops/relu_network.h"
#include "models/network_shape.h"
#include "models/ranker_settings.h"
#include "models/score_model.h"

namespace olrank {

/// θ₀, drawn by initialisation_of(); `key` is of Purpose::kInitialisation.
std::vector<float> first_parameters(const NetworkSettings& settings, const NetworkShape& shape,
                                    PhiloxKey key);

/// s of A = λI + s Σ g gᵀ, by `scaling`.
double covariance_scale(const NetworkSettings& settings);
/// ½mλ, the weight of the prior ‖θ − θ₀‖², with m = 1 unless `scaling` says otherwise.
double prior_weight(const NetworkSettings& settings, double lambda);

/// θ as named tensors, layer by layer: "layers.0.weight", "layers.0.bias", …
ModelTensors network_tensors(const NetworkSettings& settings, const NetworkShape& shape,
                             std::span<const float> theta);

/// A network for rankers that follow a gradient or try neighbours of θ.
class NetworkModel : public ScoreModel {
 public:
  NetworkModel(const NetworkSettings& settings, std::int64_t features);

  const NetworkShape& shape() const { return shape_; }
  std::int64_t features() const override { return shape_.inputs; }
  std::int64_t parameters() const override { return shape_.parameters(); }
  double largest_parameter() const override;
  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override;
  void add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<const double> weights, std::span<double> gradient) const override;
  ModelTensors tensors(std::span<const float> theta) const override;

 private:
  NetworkSettings settings_;
  NetworkShape shape_;
};

}  // namespace olrank
