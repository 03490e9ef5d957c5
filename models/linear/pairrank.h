#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/feedback/pair_history.h"
#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "models/linear/newton_trainer.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

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

/// A linear model, or an ensemble, that is fitted to the whole history by Newton's method, after each round
/// that brought pairs or as the schedule says; between two such trainings it replays a sample. In an
/// ensemble, member n learns labels y + γ, γ ~ N(0, ν²) drawn again for the whole history whenever all of
/// it is trained on; without a schedule that is in every round, with or without pairs.
class LinearLearner : public ModelLearner {
 public:
  LinearLearner(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                const std::optional<EnsembleSpec>& ensemble);

  MemberThetas thetas() const override { return thetas_; }
  void set_thetas(std::vector<std::vector<float>> thetas) override { thetas_ = std::move(thetas); }
  void observe(const Feedback& feedback, const LossPairs& loss) override;
  std::span<const double> train(ExecutionContext& context, std::uint32_t round) override;
  bool trains_without_pairs() const override;
  std::vector<RankerFigure> figures() const override;
  void fields(StateFields& state) override;
  void figure_fields(StateFields& state) override;

 private:
  struct Member {
    PhiloxKey noise_key;
    NewtonTrainer trainer;
    NewtonReport last_training;

    void report_fields(StateFields& state);
  };

  /// Labels of a member's training.
  std::span<const double> labels(const Member& member, std::uint32_t round);
  void train_on_history(ExecutionContext& context, std::uint32_t round, double ridge);
  void train_on_sample(ExecutionContext& context, std::uint32_t round, double ridge);
  /// The latest pairs in a member's expansion of its loss.
  void follow_history(Member& member, std::uint32_t round) const;
  RetrainingSchedule::Sizes sizes() const;
  bool can_replay() const;
  /// θ: the trainer's parameters, rounded.
  void take_parameters(std::size_t member);

  TrainerSettings settings_;
  double lambda_;
  std::optional<EnsembleSpec> ensemble_;
  PairHistory history_;
  RetrainingSchedule schedule_;
  PhiloxKey replay_key_;
  std::vector<Member> members_;
  std::vector<std::vector<float>> thetas_;
  std::vector<double> perturbed_wins_;
  std::vector<double> sample_rows_;
  std::vector<double> sample_weights_;
};

}  // namespace olrank
