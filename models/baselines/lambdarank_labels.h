#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/online/click_model.h"
#include "models/labels/label_objective.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// LambdaRank fitted to the true grades of all queries asked so far: the skyline of rankers that learn from
/// clicks. After each round it takes `steps` steps of Adam, each on the mean loss of `batch` rounds drawn
/// from those so far, regardless of the clicks, and shows lists by score. There is no regulariser. With
/// restart = "first" each round trains a new model: the skyline of Jia and Wang (WWW 2022, section 5.1).
class LambdaRankLabels : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankLabels(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                   std::vector<float> first_theta, const LabelledQueries& labels);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void fields(StateFields& state) override;

 private:
  const LabelledQueries& labels_;
  LabelObjective objective_;
  std::int64_t steps_a_round_;
  std::int64_t batch_;
  std::vector<float> first_theta_;  // where each round starts; empty: at the model of the round before

  std::vector<std::int64_t> asked_;  // the query of each round
  std::int64_t steps_ = 0;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;

  std::vector<std::int64_t> drawn_;
  std::vector<double> gradient_;
};

/// The grades of a query. Throws InvalidArgument, naming the ranker, where the labels have none for it.
QueryGrades grades_of(const LabelledQueries& labels, const QueryDocs& query, const std::string& ranker);

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request);
void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext& context);

/// LambdaRank on true grades, one gradient step per round on those of the asked query:
/// θ ← θ − η_t Σ_i slopes[i] ∇f(x_i), slopes of ListLoss::kLambdaRank, regardless of the clicks. It shows
/// lists by score; there is no regulariser. What a learner from clicks could do at best with as little
/// computation; LambdaRankLabels is what the labels allow.
class LambdaRankStep : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankStep(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                 std::vector<float> first_theta, const LabelledQueries& labels);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  const LabelledQueries& labels_;
  std::array<double, 1> step_{};
};

std::unique_ptr<OnlineRanker> make_lambdarank_step(const RankerRequest& request);
void set_lambdarank_step_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
