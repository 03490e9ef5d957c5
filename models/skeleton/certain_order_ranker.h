#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/fair/exposure.h"
#include "core/fair/fair_list.h"
#include "core/fair/fair_swap.h"
#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

/// Certain orders and the list made from them, wherever the orders were found; with groups, a list that is
/// made fair, or whose fairness is measured.
class CertainList {
 public:
  CertainList(const ExplorationSettings& settings, const FairSettings& fair, const TrialKeys& keys,
              std::int64_t cutoff);

  /// Makes one for a list that is made ahead of its round.
  static CertainList of(const RankingTask& task, ExplorationSettings settings, const FairSettings& fair,
                        const TrialKeys& keys);
  /// Such a list with its orders, which move.
  void hand_over(const RankedList& made, Ranking& ranking);

  /// They go by place in the order by score, and are set before make().
  OrderBits& orders() { return orders_; }
  const OrderBits& orders() const { return orders_; }

  /// `by_score` are the documents, best first; `fair` may be null. The list stays valid until the next
  /// call.
  RankedList make(std::span<const std::int32_t> by_score, std::uint32_t round, const FairRound* fair);
  /// Makes the list from blocks that are given.
  RankedList make_of_blocks(std::span<const std::int32_t> by_score,
                            std::span<const std::int32_t> block_ends, std::uint32_t round,
                            const FairRound* fair);
  /// Takes a list that is given, unless it has to be fair.
  RankedList make_of_list(std::span<const std::int32_t> by_score, std::span<const std::int32_t> list,
                          std::span<const double> propensity, std::uint32_t round, const FairRound* fair);
  /// Makes the list of other scores and orders, as proportional control has them: what they violate is
  /// counted in orders().
  RankedList make_controlled(std::span<const std::int32_t> by_score,
                             std::span<const std::int32_t> controlled_by_score,
                             const OrderBits& controlled_orders, std::uint32_t round);
  /// Makes the controlled list from blocks that are given, which are shuffled.
  RankedList make_controlled_blocks(std::span<const std::int32_t> by_score,
                                    std::span<const std::int32_t> controlled_by_score,
                                    std::span<const std::int32_t> controlled_ends, std::uint32_t round);

  /// The documents of the list that are shown.
  std::span<const std::int32_t> shown(const RankedList& list) const;

  /// The orders by document: 1 where row i is certainly before column j.
  void write_matrix(std::span<const std::int32_t> by_score, std::vector<std::uint8_t>& matrix) const;

 private:
  RankedList finish(std::span<const std::int32_t> by_score, bool uniform, std::uint32_t round,
                    const FairRound* fair);
  /// Adds what the documents' order violates.
  RankedList with_violated(RankedList list, std::span<const std::int32_t> by_score);

  std::int64_t cutoff_;
  ExploringList list_;
  std::optional<FairList> fair_list_;  // with FairExp
  OrderBits orders_;
  std::vector<std::int32_t> fair_places_;
  std::vector<std::int32_t> place_of_;
  std::vector<std::uint64_t> placed_;
};

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
  CertainOrderRanker(const RankerRequest& request, std::unique_ptr<Belief> belief,
                     std::unique_ptr<ModelLearner> learner, std::unique_ptr<WidthShadow> shadow = nullptr);

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
  std::unique_ptr<WidthShadow> shadow_;  // or null

  // These belong to the query scored last.
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
