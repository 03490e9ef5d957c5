#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "models/skeleton/ranker_request.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// RankNet on clicks: Burges et al., "Learning to rank using gradient descent", ICML 2005. One step of
/// stochastic gradient descent on the pairs of each round, θ ← θ + η_t Σ σ(−z)(∇f(x_w) − ∇f(x_l)) with
/// z = f(x_w) − f(x_l). There is no regulariser: a round's pairs are only a sample of the loss, and
/// the prior term belongs to methods that keep the whole history. Shows greedy or ε-greedy lists.
class RankNetRanker : public ScoreModelRanker {
 public:
  RankNetRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                std::vector<float> first_theta = {});

  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  ScoreLists lists() const override;

  PairSettings feedback_;
  double epsilon_;  // 0: greedy
  PhiloxKey list_key_;
  PhiloxKey batch_key_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_;
  std::array<double, 1> step_{};
};

std::unique_ptr<OnlineRanker> make_ranknet(const RankerRequest& request);
void set_ranknet_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
