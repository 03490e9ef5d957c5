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
#include "models/ranker_settings.h"

namespace olrank {

/// Linear rankers that vote: Jia, Wang, "Scalable exploration for neural online learning to rank with
/// perturbed feedback", SIGIR 2022, with a linear model. Member n learns labels y + γ, γ ~ N(0, ν²) drawn
/// anew for the whole history every round that brought pairs; an order is certain when all members agree.
/// The ensemble's score is the mean of its members'.
class P2LinRank : public OnlineRanker {
 public:
  P2LinRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
            std::int64_t cutoff);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override;
  ModelTensors model() const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  struct Member {
    PhiloxKey noise_key;
    NewtonTrainer trainer;
    std::vector<float> theta;  // the trainer's parameters, rounded
    NewtonReport latest_training;
  };

  void train(ExecutionContext& context, Member& member, std::uint32_t round);
  void take_parameters(Member& member);
  void average_members();
  std::vector<std::vector<float>> thetas() const;  // of each member

  RankerSettings settings_;
  std::int64_t cutoff_;
  PhiloxKey batch_key_;
  PhiloxKey list_key_;
  LinearModel model_;

  // State.
  std::vector<Member> members_;
  PairHistory history_;

  std::vector<float> mean_theta_;  // a linear model's mean score is its mean parameters' score

  // Of the latest list.
  ExploringList list_;
  OrderBits orders_;
  std::vector<float> scores_;         // by mean_theta_
  std::vector<float> member_scores_;  // [members × V]
  std::vector<std::int32_t> by_score_;
  std::vector<PreferencePair> pairs_;
  std::vector<double> perturbed_wins_;
};

}  // namespace olrank
