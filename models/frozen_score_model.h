#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/online/frozen_ranker.h"
#include "models/score_model.h"
#include "models/score_order.h"

namespace olrank {

/// A frozen ranker that consists of a score model and parameters; its exploration depends on the scores
/// only.
class FrozenScoreModel : public FrozenRanker {
 public:
  FrozenScoreModel(std::shared_ptr<const ScoreModel> model, std::span<const float> theta)
      : model_(std::move(model)), theta_(theta.begin(), theta.end()) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    score_and_order(context, *model_, theta_, task.docs, ranking.scores, ranking.by_score);
    ranking.list = ranking.by_score;
    ranking.propensity.assign(ranking.list.size(), 1.0);
    ranking.knows_orders = false;
    ranking.certainty.reset();
    if (task.explore) explore(context, task, ranking);
  }
  ModelTensors model() const override { return model_->tensors(theta_); }

 private:
  /// Writes the list that is shown instead of the order by score, and its propensities.
  virtual void explore(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const = 0;

  std::shared_ptr<const ScoreModel> model_;
  std::vector<float> theta_;
};

}  // namespace olrank
