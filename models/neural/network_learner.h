#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "core/online/trial_keys.h"
#include "models/model_learner.h"
#include "models/neural/document_history.h"
#include "models/neural/network_trainer.h"
#include "models/ranker_settings.h"

namespace olrank {

/// Networks that are trained on the whole history after each round that brought pairs. With noise, member n
/// learns labels y + γ, γ ~ N(0, ν²) drawn again for the whole history in every round. Members train side
/// by side, each on one thread.
class NetworkLearner : public ModelLearner {
 public:
  /// Members start at `first_thetas` where there are any, else at drawn θ₀.
  NetworkLearner(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                 const std::optional<EnsembleSpec>& ensemble, MemberThetas first_thetas);

  MemberThetas thetas() const override { return thetas_; }
  void observe(const Feedback& feedback, std::span<const PreferencePair> pairs) override;
  std::span<const double> train(ExecutionContext& context, std::uint32_t round) override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  struct Member {
    PhiloxKey noise_key;
    std::unique_ptr<NetworkTrainer> trainer;
    std::vector<PairTerm> perturbed;
  };

  void train_member(ExecutionContext& context, std::size_t number, std::uint32_t round);
  std::span<const PairTerm> labels(Member& member, std::uint32_t round) const;

  PairRule pair_rule_;
  bool weigh_by_ndcg_;
  std::optional<EnsembleSpec> ensemble_;
  DocumentHistory history_;
  std::vector<std::vector<float>> first_thetas_;  // θ₀
  std::vector<std::vector<float>> thetas_;
  std::vector<Member> members_;

  LossPairs loss_pairs_;
  std::vector<double> steps_;
  std::vector<std::vector<float>> before_;                          // thetas_ before the latest training
  std::vector<std::exception_ptr> failures_;                        // of the members in it
  std::vector<std::unique_ptr<ExecutionContext>> worker_contexts_;  // of one thread each
};

}  // namespace olrank
