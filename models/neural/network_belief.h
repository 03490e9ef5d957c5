#pragma once

#include <memory>
#include <span>
#include <utility>

#include "models/posterior/posterior.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/tangent_model.h"

namespace olrank {

/// Widths of a network: the Mahalanobis width of the difference of two tangent gradients, under the
/// covariance of those of all observed pairs.
class NetworkWidths : public Belief {
 public:
  NetworkWidths(std::shared_ptr<const TangentModel> model, std::unique_ptr<Posterior> posterior);

  Evidence take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const override;
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override;
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override;
  bool has_widths() const override { return true; }
  void measure_widths(ExecutionContext& context, FeatureMatrix docs, Evidence& evidence) const override;
  void measure_and_repair_widths(ExecutionContext& context, FeatureMatrix docs,
                                 Evidence& evidence) override;
  double log_det() const override { return posterior_->log_det(); }
  bool observes_evidence() const override { return true; }
  void observe(ExecutionContext& context, FeatureMatrix docs, const Evidence& evidence,
               std::span<const PreferencePair> pairs) override;
  std::shared_ptr<const Belief> freeze() const override;
  ModelTensors model(MemberThetas thetas) const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  void save(StateWriter& state) const override { posterior_->save(state); }
  void load(StateReader& state) override { learning_->load(state); }

 private:
  NetworkWidths(std::shared_ptr<const TangentModel> model, std::shared_ptr<const Posterior> frozen);

  std::shared_ptr<const TangentModel> model_;
  std::shared_ptr<const Posterior> posterior_;
  Posterior* learning_ = nullptr;  // *posterior_; null when frozen
};

/// The votes of networks; the ensemble's score is the mean of its members'.
class NetworkVotes : public Belief {
 public:
  explicit NetworkVotes(std::shared_ptr<const TangentModel> model) : model_(std::move(model)) {}

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
  std::shared_ptr<const TangentModel> model_;
};

}  // namespace olrank
