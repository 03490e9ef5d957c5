#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/data/dataset.h"
#include "core/online/online_ranker.h"
#include "models/linear/newton_trainer.h"
#include "models/posterior/row_covariance.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/network_settings.h"
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

/// Widths of a linear model: a document's gradient is its features.
class LinearWidths : public Belief {
 public:
  LinearWidths(std::int64_t features, RowCovariance covariance);

  Evidence take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const override;
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override;
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override;
  bool has_widths() const override { return true; }
  void measure_widths(ExecutionContext& context, FeatureMatrix docs, Evidence& evidence) const override;
  double log_det() const override { return covariance_.log_det(); }
  void observe(ExecutionContext& context, FeatureMatrix docs, const Evidence& evidence,
               std::span<const PreferencePair> pairs) override;
  std::shared_ptr<const Belief> freeze() const override;
  ModelTensors model(MemberThetas thetas) const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  void fields(StateFields& state) override { covariance_.fields(state); }

 private:
  LinearModel model_;
  RowCovariance covariance_;
};

/// The votes of linear models. A linear model's mean score is its mean parameters' score.
class LinearVotes : public Belief {
 public:
  explicit LinearVotes(std::int64_t features) : model_(features) {}

  Evidence take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const override;
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override;
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override;
  bool has_widths() const override { return false; }
  void measure_widths(ExecutionContext&, FeatureMatrix, Evidence&) const override {}
  std::shared_ptr<const Belief> freeze() const override;
  ModelTensors model(MemberThetas thetas) const override;

 private:
  LinearModel model_;
};

}  // namespace olrank

// Linear rankers with certain orders share these.
namespace olrank {

std::int64_t padded_features(std::int64_t features);
NewtonTrainer::Options newton_options(const TrainerSettings& settings);
/// Steps and tolerance of Newton's method.
void set_newton_defaults(TrainerSettings& settings);

/// The weight c of c/2 ‖θ‖² added to a summed loss: λ for the sum form; 2λn for mean loss + λ‖θ‖², times n.
double ridge_weight(LossForm form, double lambda, std::int64_t observed);

/// x_winner − x_loser of each pair, [pairs × features].
void write_difference_rows(FeatureMatrix docs, std::span<const PreferencePair> pairs,
                           std::span<double> rows);

}  // namespace olrank
