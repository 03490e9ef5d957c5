#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/feedback/preference_pairs.h"
#include "core/online/frozen_ranker.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/neural/document_history.h"
#include "models/neural/network_trainer.h"
#include "models/ranker_settings.h"

namespace olrank {

/// Networks that vote: Jia, Wang, "Scalable exploration for neural online learning to rank with perturbed
/// feedback", SIGIR 2022. Member n starts from a θ₀ of its own and learns labels y + γ, γ ~ N(0, ν²) drawn
/// anew for the whole history every round that brought pairs; an order is certain when all members agree.
/// The ensemble's score is the mean of its members'. Members train side by side, each on one thread.
/// `first_thetas`, one a member, are where to start instead of at drawn θ₀.
class P2NeurRank : public OnlineRanker {
 public:
  P2NeurRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
             std::int64_t cutoff, std::span<const std::vector<float>> first_thetas = {});

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
    std::vector<float> first_theta;  // θ₀
    std::vector<float> theta;
    std::unique_ptr<NetworkTrainer> trainer;
    std::vector<PairTerm> perturbed;
  };

  void perturb(Member& member, std::uint32_t round);

  RankerSettings settings_;
  std::int64_t cutoff_;
  PhiloxKey batch_key_;
  PhiloxKey list_key_;
  NetworkShape shape_;

  // State.
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::span<const float>> thetas_;  // of each member, where it stands
  DocumentHistory history_;

  // Of the latest list.
  std::vector<float> member_scores_;  // [members × V]
  std::vector<float> scores_;         // their mean
  std::vector<std::int32_t> by_score_;
  ExploringList list_;
  OrderBits orders_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_pairs_;
  std::vector<double> steps_;
  std::vector<std::unique_ptr<ExecutionContext>>
      worker_contexts_;  // one thread each, for members side by side
};

}  // namespace olrank
