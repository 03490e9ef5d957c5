#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "models/neural/document_history.h"
#include "models/neural/network_trainer.h"
#include "models/neural/training_sample.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

/// When to train on the whole history. Mini-batches go over every pair, so only full batches follow a
/// schedule.
RetrainingRule retraining_rule(const TrainerSettings& trainer);
/// Tells what a network's history keeps, for models that score documents one by one or by lists.
HistoryContent history_content(const RankerSettings& settings, bool reads_lists = false);
/// The state of a schedule, and the round of the latest training on the whole history; nothing where every
/// round is one.
void save_schedule(StateWriter& state, const RetrainingSchedule& schedule, std::uint32_t noise_round);
void load_schedule(StateReader& state, RetrainingSchedule& schedule, std::uint32_t& noise_round);

/// Networks that are trained after each round that brought pairs: on the whole history, or as the schedule
/// says on a sample of it. With noise, member n learns labels y + γ, γ ~ N(0, ν²) drawn again at every
/// training on the whole history; with such a training in every round, in rounds without pairs, too.
/// Members train side by side, each on one thread.
class NetworkLearner : public ModelLearner {
 public:
  /// Members start at `first_thetas` where there are any, else at drawn θ₀.
  NetworkLearner(std::shared_ptr<const TangentModel> model, const RankerSettings& settings,
                 const TrialKeys& keys, const std::optional<EnsembleSpec>& ensemble,
                 MemberThetas first_thetas);

  MemberThetas thetas() const override { return thetas_; }
  void set_thetas(std::vector<std::vector<float>> thetas) override { thetas_ = std::move(thetas); }
  void observe(const Feedback& feedback, const LossPairs& loss) override;
  bool trains_without_pairs() const override;
  bool learns_from_unshown() const override { return model_->reads_lists(); }
  std::span<const double> train(ExecutionContext& context, std::uint32_t round) override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  struct Member {
    PhiloxKey noise_key;
    PhiloxKey restart_key;
    PhiloxKey prior_key;
    std::unique_ptr<NetworkTrainer> trainer;
    std::vector<PairTerm> perturbed;
    std::vector<PairTerm> perturbed_changes;  // of the history
    std::vector<float> centre;                // of its prior, where that is perturbed
  };

  void train_member(ExecutionContext& context, std::size_t number, TrainingExtent extent,
                    std::uint32_t round);
  /// Moves the parameters of a member to where a training on the whole history starts.
  void restart(std::size_t number, std::uint32_t round);
  /// The centre of a member's prior, with the noise of `round`.
  std::span<const float> prior_centre(std::size_t number, std::uint32_t round);
  std::span<const PairTerm> labels(Member& member, std::uint32_t round) const;
  std::span<const PairTerm> labels(const Member& member, const TrainingSample& sample,
                                   std::vector<PairTerm>& perturbed) const;
  /// The error of the first member whose latest training failed, if any.
  void end_failed_training();

  std::shared_ptr<const TangentModel> model_;
  bool weigh_by_ndcg_;
  std::optional<EnsembleSpec> ensemble_;
  DocumentHistory history_;
  Restart restart_;
  double prior_deviation_ = 0.0;  // of the noise on a prior's centre
  RetrainingSchedule schedule_;
  std::uint32_t noise_round_ = 0;  // of the latest training on the whole history
  PhiloxKey replay_key_;
  TrainingSample sample_;
  TrainingSample history_changes_;
  std::vector<std::vector<float>> first_thetas_;  // θ₀
  std::vector<std::vector<float>> thetas_;
  std::vector<Member> members_;

  bool brought_pairs_ = false;  // the round to train on
  std::vector<double> steps_;
  std::vector<std::vector<float>> before_;                          // thetas_ before the latest training
  std::vector<std::exception_ptr> failures_;                        // of the members in it
  std::vector<std::unique_ptr<ExecutionContext>> worker_contexts_;  // of one thread each
};

}  // namespace olrank
