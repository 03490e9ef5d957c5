#pragma once

#include "models/skeleton/score_model.h"

namespace olrank {

/// f(x; θ) = θ·x.
class LinearModel : public ScoreModel {
 public:
  explicit LinearModel(std::int64_t features) : features_(features) {}

  std::int64_t features() const override { return features_; }
  std::int64_t parameters() const override { return features_; }
  double largest_parameter() const override;
  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override;
  void add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<const double> weights, std::span<double> gradient) const override;
  ModelTensors tensors(std::span<const float> theta) const override;

 private:
  std::int64_t features_;
};

}  // namespace olrank
