#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/feedback/pair_history.h"
#include "core/online/frozen_ranker.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/linear/linear_model.h"
#include "models/linear/newton_trainer.h"
#include "models/posterior/row_covariance.h"
#include "models/ranker_settings.h"

namespace olrank {

/// A linear ranker that explores only the pairs whose order is still uncertain: Jia, Wang, Guo, Wang,
/// "PairRank: Online pairwise learning to rank by divide-and-conquer", WWW 2021. Pairwise logistic
/// regression over all preferences so far; the confidence of an order from the covariance of their
/// feature differences.
class PairRank : public OnlineRanker {
 public:
  PairRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
           std::int64_t cutoff);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override { return model_.parameters(); }
  ModelTensors model() const override { return model_.tensors(theta_); }
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  void train(ExecutionContext& context);

  RankerSettings settings_;
  std::int64_t cutoff_;
  PhiloxKey batch_key_;
  PhiloxKey list_key_;
  LinearModel model_;

  // State.
  std::vector<float> theta_;  // what ranks: the trainer's parameters, rounded
  NewtonTrainer trainer_;
  PairHistory history_;
  RowCovariance covariance_;
  NewtonReport latest_training_;

  // Of the latest list.
  ExploringList list_;
  OrderBits orders_;
  std::vector<float> scores_;
  std::vector<double> width_sq_;
  std::vector<std::int32_t> by_score_;
  std::vector<PreferencePair> pairs_;
};

}  // namespace olrank
