#pragma once

#include <memory>
#include <span>

#include "models/linear/linear_model.h"
#include "models/posterior/row_covariance.h"
#include "models/skeleton/belief.h"

namespace olrank {

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
