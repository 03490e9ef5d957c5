#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/online/online_ranker.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// Makes a list from a query's scores: the documents, and the propensity of each rank as in RankedList. May
/// run on several threads at once.
using ScoreLists =
    std::function<void(ExecutionContext& context, const RankingTask& task, std::span<const double> scores,
                       std::vector<std::int32_t>& list, std::vector<double>& propensity)>;

/// Rankers without a posterior share this class. Their state is the parameters θ of a score model and the
/// number of rounds they learned from. Scores are kept from rank() to learn() and recomputed if the
/// feedback is about another query or θ has changed.
class ScoreModelRanker : public OnlineRanker {
 public:
  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override { return model_->parameters(); }
  ModelTensors model() const override { return model_->tensors(theta_); }
  std::vector<RankerFigure> figures(ExecutionContext&) const override { return {}; }
  bool learns_from_unshown() const override { return model_->reads_lists(); }
  void fields(StateFields& state) override;

  /// Throws InvalidArgument if clicks and list differ in length, or if a document is out of range or shown
  /// twice.
  static void check(const Feedback& feedback, Scratch& scratch);

 protected:
  /// `first_theta` are the parameters before anything is learned; all zero when empty.
  ScoreModelRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                   std::vector<float> first_theta);

  /// How this ranker and its snapshots make lists; none for one that overrides rank() and has no snapshots.
  virtual ScoreLists lists() const { return nullptr; }

  const std::string& name() const { return name_; }
  const TrialKeys& keys() const { return keys_; }
  const ScoreModel& score_model() const { return *model_; }
  std::span<const float> theta() const { return theta_; }

  /// f(x; θ) of the query's documents. Throws NumericError for scores that are not finite.
  std::span<const double> scores_of(RoundContext& context, const QueryDocs& query, std::uint32_t round);
  /// Whether scores_of() has the scores in memory.
  bool has_scores_of(const QueryDocs& query, std::uint32_t round) const;
  /// f(x; θ') for parameters that a ranker tries.
  void score_with(ExecutionContext& context, std::span<const float> tried, const QueryDocs& query,
                  std::uint32_t round, std::span<double> scores) const;

  /// η_t = η · decay^(rounds learned from so far).
  double step() const;
  /// θ ← θ + step() · Σ_i weights[i] ∇f(x_i).
  void follow_gradient(ExecutionContext& context, const QueryDocs& query, std::span<const double> weights);
  /// θ ← θ + step() · direction.
  void move_along(std::span<const double> direction);
  void set_theta(std::span<const float> theta);
  void end_round() { ++rounds_learned_; }

  /// The list to show, and the propensity of each rank as in RankedList.
  RankedList shown_list() const {
    RankedList list{list_, std::nullopt};
    list.propensity = propensity_;
    return list;
  }

  std::vector<std::int32_t> list_;
  std::vector<double> propensity_;

 private:
  std::shared_ptr<const ScoreModel> model_;
  std::string name_;
  TrialKeys keys_;
  double learning_rate_;
  double learning_rate_decay_;

  std::vector<float> theta_;
  std::uint64_t rounds_learned_ = 0;

  // Scores by θ of the query ranked last; not state.
  std::vector<double> scores_;
  QueryDocs scored_query_;
  std::uint32_t scored_round_ = 0;  // 0: none
};

}  // namespace olrank
