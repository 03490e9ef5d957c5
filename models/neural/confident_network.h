#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/feedback/preference_pairs.h"
#include "core/online/frozen_ranker.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/neural/document_history.h"
#include "models/neural/network_trainer.h"
#include "models/posterior/posterior.h"
#include "models/ranker_settings.h"

namespace olrank {

/// A ReLU network that knows which orders it is sure of: Jia, Wang, "Learning neural ranking models online
/// from implicit user feedback", WWW 2022 (olRankNet, olLambdaRank by the kind in the settings). The
/// confidence of an order is the Mahalanobis width of the difference of two tangent gradients, under the
/// covariance of those of all observed pairs. `memory` is what the covariance may take, 0 for all there is;
/// `first_theta` is where to start instead of at a drawn θ₀.
class ConfidentNetwork : public OnlineRanker {
 public:
  ConfidentNetwork(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                   std::int64_t cutoff, std::int64_t memory = 0, std::vector<float> first_theta = {});

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override { return shape_.parameters(); }
  ModelTensors model() const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  /// Copies of the factors of shown documents, in their order.
  TangentFactors factors_of(std::span<const std::int32_t> shown);
  void teach_shadow(ExecutionContext& context, std::span<const std::int32_t> shown);
  /// What the shadow says of them: width_ratios_, and the decisions that it would turn.
  Tally compare_widths(ExecutionContext& context, std::span<const std::int32_t> shown);
  /// Factors and scores of a query at the parameters as they stand.
  void look_at(ExecutionContext& context, const QueryDocs& query);

  RankerSettings settings_;
  std::int64_t cutoff_;
  PhiloxKey batch_key_;
  PhiloxKey list_key_;
  NetworkShape shape_;
  std::vector<float> first_theta_;  // θ₀, a function of the keys or a model

  // State.
  std::vector<float> theta_;
  DocumentHistory history_;
  std::unique_ptr<NetworkTrainer> trainer_;
  std::unique_ptr<Posterior> posterior_;
  std::unique_ptr<Posterior> shadow_;  // the full covariance beside another one; decides nothing

  // Of the query looked at last.
  std::int64_t seen_query_ = -1;  // −1 when θ has moved since
  std::vector<float> factors_;
  std::vector<float> scores_;
  std::vector<float> magnitudes_;
  std::vector<double> width_sq_;
  std::vector<std::int32_t> by_score_;
  CertaintyRule list_rule_;
  ExploringList list_;
  OrderBits orders_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_pairs_;
  std::vector<double> steps_;

  // Of the list shown last.
  std::vector<float> shown_factors_;
  std::vector<PreferencePair> shown_pairs_;  // pairs_ by rank
  std::vector<double> shown_scores_;
  std::vector<double> own_sq_;
  std::vector<double> exact_sq_;
  std::vector<double> width_ratios_;
};

}  // namespace olrank
