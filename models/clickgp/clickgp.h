#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/feedback/examination.h"
#include "core/online/online_ranker.h"
#include "models/clickgp/click_ranking.h"
#include "models/clickgp/click_regression.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A Bayesian click model with a memory of documents: logit P(click | looked at) = φ·θ + u_d + b_q. A
/// linear and an additive model run side by side, weighted by how well they predicted the clicks so far.
/// How users read is learned, too, and all strengths follow from the evidence. If users change, the
/// evidence is forgotten. No setting is about the data.
class ClickGp : public OnlineRanker {
 public:
  ClickGp(const RankerSettings& settings, std::int64_t features, const TrialKeys& keys, std::int64_t cutoff,
          const std::shared_ptr<const std::vector<float>>& start = {});

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override;
  ModelTensors model() const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  /// Inputs are scaled within the query, by all of its documents.
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override;

 private:
  void start_models(const std::shared_ptr<const std::vector<float>>& start);
  void remember(KnownQuery& known, const QueryIdentity& identity, const Feedback& feedback);
  /// Whether users have changed, so that what was learned is out of date.
  bool has_changed(const QueryIdentity& identity, std::span<const std::uint8_t> clicks);
  void forget_all(ExecutionContext& context);
  void keep_within_limit(ExecutionContext& context);
  void update_weights();
  void publish(std::size_t model) { state_.beliefs[model] = models_[model].belief(); }

  RankerSettings settings_;
  TrialKeys keys_;
  std::int64_t features_;
  std::int64_t centred_;  // of the widest model
  ClickState state_;
  std::vector<ClickRegression> models_;
  std::vector<double> log_likelihoods_;  // of the models
  std::int64_t memory_bytes_ = 0;
  ClickRanking ranking_;
  std::vector<Examination::Reading> readings_;
  ChangeAlarm alarm_;
  std::int64_t latest_query_ = -1;
  double changes_ = 0.0;  // of users that the alarm has noticed
};

/// The features of the models that run side by side; those of the last one begin with those of the others.
std::vector<ClickFeatures> click_features_of(const RankerSettings& settings, std::int64_t features,
                                             const std::shared_ptr<const std::vector<float>>& start = {});
/// The bytes that `docs` remembered documents of `queries` queries take with all click models.
double clickgp_bytes(const RankerSettings& settings, std::int64_t features, double docs, double queries);

std::unique_ptr<OnlineRanker> make_clickgp(const RankerRequest& request);
void set_clickgp_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
