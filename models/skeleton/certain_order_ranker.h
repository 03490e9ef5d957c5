#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/online/frozen_ranker.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/certain_list.h"
#include "models/skeleton/model_learner.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

/// How a query's list follows from what is known of it: for the ranker that learns and for its snapshots.
struct CertainListMaker {
  struct Decided {
    RankedList list;  // valid as long as the CertainList's
    CertaintyRule rule;
  };

  CertainListMaker(const RankerSettings& settings, const TrialKeys& of);

  /// The certain orders and the list. FairCo's is by scores of which those of one group are raised.
  Decided decide(ExecutionContext& context, const Belief& belief, const Evidence& evidence,
                 std::span<const std::int32_t> by_score, std::uint32_t round, const FairRound* groups,
                 CertainList& list) const;
  /// A list ahead of its round.
  void make(ExecutionContext& context, const Belief& belief, MemberThetas thetas, const RankingTask& task,
            Ranking& ranking) const;

  ExplorationSettings explore;
  FairSettings fair;
  CertaintyPolicy policy;
  TrialKeys keys;
};

/// A ranker that explores only the pairs whose order is still uncertain: scores → widths or votes → certain
/// orders → list → clicks → pairs → history and posterior → training. What it knows is its Belief, how its
/// parameters follow the feedback its ModelLearner.
class CertainOrderRanker : public OnlineRanker {
 public:
  struct Parts {
    std::unique_ptr<Belief> belief;
    std::unique_ptr<ModelLearner> learner;
    std::unique_ptr<WidthShadow> shadow;  // or null
  };

  CertainOrderRanker(const RankerSettings& settings, const TrialKeys& keys, std::int64_t cutoff,
                     Parts parts);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override;
  ModelTensors model() const override { return belief_->model(learner_->thetas()); }
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  bool learns_from_unshown() const override { return learner_->learns_from_unshown(); }
  void fields(StateFields& state) override;
  void save_for_lists(StateWriter& state) const override;
  void load_for_lists(StateReader& state) override;

 private:
  /// Takes the round's pairs into the posterior, with evidence at the current parameters.
  void observe(RoundContext& context, const Feedback& feedback);
  /// Scores of a query at the current parameters, as the evidence.
  void score_query(ExecutionContext& context, const QueryDocs& query);

  RankerSettings settings_;
  CertainListMaker maker_;
  PhiloxKey batch_key_;

  // State.
  std::unique_ptr<Belief> belief_;
  std::unique_ptr<ModelLearner> learner_;
  std::unique_ptr<WidthShadow> shadow_;

  // Of the query scored last.
  Scratch evidence_memory_;
  std::optional<Scratch::Frame> evidence_frame_;
  Evidence evidence_;
  std::int64_t scored_query_ = -1;  // −1 once the parameters have changed
  std::vector<std::int32_t> by_score_;
  CertainList list_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_;
};

}  // namespace olrank
