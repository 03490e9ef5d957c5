#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/data/dataset.h"
#include "core/online/online_ranker.h"
#include "models/linear/newton_trainer.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/network_settings.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// f(x; θ) = θ·x.
class LinearModel : public ScoreModel {
 public:
  explicit LinearModel(std::int64_t features) : features_(features) {}

  std::int64_t features() const override { return features_; }
  std::int64_t parameters() const override { return features_; }
  double largest_parameter() const override;
  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override;
  void add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<const double> weights, std::span<double> gradient) const override;
  ModelTensors tensors(std::span<const float> theta) const override;

 private:
  std::int64_t features_;
};

// Linear rankers with certain orders share these.

std::int64_t padded_features(std::int64_t features);
NewtonTrainer::Options newton_options(const TrainerSettings& settings);
/// Steps and tolerance of Newton's method.
void set_newton_defaults(TrainerSettings& settings);

/// The weight c of c/2 ‖θ‖² added to a summed loss: λ for the sum form; 2λn for mean loss + λ‖θ‖², times n.
double ridge_weight(LossForm form, double lambda, std::int64_t observed);

/// x_winner − x_loser of each pair, [pairs × features].
void write_difference_rows(FeatureMatrix docs, std::span<const PreferencePair> pairs,
                           std::span<double> rows);

/// PairRank, a linear ranker with certain orders: Jia, Wang, Guo, Wang, "PairRank: Online pairwise learning
/// to rank by divide-and-conquer", WWW 2021. Pairwise logistic regression over all preferences so far; the
/// confidence of an order follows from the covariance of their feature differences.
std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request);

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// P²LinRank, linear rankers that vote: Jia, Wang, "Scalable exploration for neural online learning to rank
/// with perturbed feedback", SIGIR 2022, with a linear model. An order is certain when all members agree;
/// the ensemble's score is the mean of its members'.
std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request);

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// A linear model, or an ensemble, that is fitted to the whole history.
std::unique_ptr<ModelLearner> make_linear_learner(std::int64_t features, const RankerSettings& settings,
                                                  const TrialKeys& keys,
                                                  const std::optional<EnsembleSpec>& ensemble);

}  // namespace olrank
