#include "models/neural/network_rankers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "models/neural/network_trainer.h"
#include "models/neural/ranker_network.h"
#include "models/neural/training_sample.h"
#include "models/ranker_kinds.h"

namespace olrank {

RetrainingRule retraining_rule(const TrainerSettings& trainer) {
  return trainer.loss == LossForm::kSum ? trainer.retraining() : RetrainingRule{};
}

HistoryContent history_content(const RankerSettings& settings, bool reads_lists) {
  const bool samples = retraining_rule(settings.trainer).retrain == Retrain::kGrowth;
  const bool lists = row_of(settings.kind).weighs_by_ndcg;
  return {.lists = lists,
          .pairs = !samples,
          .counts = samples,
          .examined_after = settings.feedback.examined_after,
          .whole_lists = reads_lists};
}

void schedule_fields(StateFields& state, RetrainingSchedule& schedule, std::uint32_t& noise_round) {
  if (schedule.rule().retrain == Retrain::kEveryRound) return;
  const auto [observed, distinct] = schedule.latest();
  // Both are there twice, as checkpoints have them since histories could forget pairs.
  std::array latest = {observed, distinct, distinct, observed};
  state.sized("schedule.latest", latest);
  if (state.reads()) schedule.set_latest({latest[0], latest[1]});
  state.numbers("noise_round", noise_round);
}

namespace {

/// Networks that are trained after each round that brought pairs: on the whole history, or as the schedule
/// says on a sample of it. With noise, member n learns labels y + γ, γ ~ N(0, ν²) drawn again at every
/// training on the whole history; with such a training in every round, in rounds without pairs, too.
/// Members train side by side, each on one thread.
class NetworkLearner : public ModelLearner {
 public:
  NetworkLearner(std::shared_ptr<const TangentModel> model, const RankerSettings& settings,
                 const TrialKeys& keys, const std::optional<EnsembleSpec>& ensemble,
                 MemberThetas first_thetas)
      : model_(std::move(model)),
        weigh_by_ndcg_(row_of(settings.kind).weighs_by_ndcg),
        ensemble_(ensemble),
        history_(model_->features(), history_content(settings, model_->reads_lists())),
        restart_(settings.trainer.restart),
        schedule_(retraining_rule(settings.trainer)),
        replay_key_(keys.key(Purpose::kReplay)) {
    const auto members = static_cast<std::uint64_t>(ensemble_ ? ensemble_->members : 1);
    for (std::uint64_t member = 0; member < members; ++member) {
      const PhiloxKey key = keys.key(Purpose::kInitialisation, member);
      first_thetas_.push_back(first_thetas.empty() ? model_->first_parameters(key) : first_thetas[member]);
    }
    thetas_ = first_thetas_;
    const double weight = prior_weight(settings.network, settings.posterior.lambda);
    if (settings.posterior.prior_noise && settings.trainer.loss == LossForm::kSum && ensemble_)
      prior_deviation_ = std::sqrt(ensemble_->noise_variance / prior_curvature(weight));
    for (std::uint64_t member = 0; member < members; ++member) {
      members_.push_back(
          {keys.key(Purpose::kLabelNoise, member),
           keys.key(Purpose::kRestart, member),
           keys.key(Purpose::kPriorNoise, member),
           make_network_trainer({*model_, settings.trainer, settings.posterior.lambda, weight,
                                 first_thetas_[member], keys.key(Purpose::kBatch, member)}),
           {},
           {},
           {}});
    }
  }

  MemberThetas thetas() const override { return thetas_; }
  void set_thetas(std::vector<std::vector<float>> thetas) override { thetas_ = std::move(thetas); }
  void observe(const Feedback& feedback, const LossPairs& loss) override {
    history_.add(feedback, loss.pairs, loss.weight);
    brought_pairs_ = true;
  }
  bool trains_without_pairs() const override {
    return ensemble_ && schedule_.rule().retrain == Retrain::kEveryRound && history_.observed() > 0;
  }
  bool learns_from_unshown() const override { return model_->reads_lists(); }
  std::span<const double> train(ExecutionContext& context, std::uint32_t round) override {
    if (!brought_pairs_) history_.end_round();
    brought_pairs_ = false;
    const TrainingExtent extent = schedule_.extent(history_.sizes());
    if (extent == TrainingExtent::kNothing) return {};
    if (extent == TrainingExtent::kHistory) {
      // Should it fail, the next one is due: no reference has the round's pairs or noise.
      schedule_.set_latest({});
    } else {
      sample_.draw(history_, replay_key_, round, schedule_.rule().replay);
      history_changes_.take_changes(history_);
    }
    const auto count = std::ssize(members_);
    steps_.resize(members_.size());
    if (!ensemble_) {
      train_member(context, 0, extent, round);
    } else {
      while (static_cast<int>(worker_contexts_.size()) < context.threads())
        worker_contexts_.push_back(std::make_unique<ExecutionContext>());
      before_ = thetas_;
      failures_.assign(count, nullptr);
      context.for_blocks(count, 1, [this, extent, round](std::int64_t member, std::int64_t, int worker) {
        try {
          train_member(*worker_contexts_[worker], static_cast<std::size_t>(member), extent, round);
        } catch (...) {
          failures_[member] = std::current_exception();
        }
      });
      // All members train, so that what follows a failure does not depend on the number of threads.
      end_failed_training();
    }
    if (extent == TrainingExtent::kHistory) {
      schedule_.trained(history_.sizes());
      noise_round_ = round;
    }
    const bool stepped =
        std::all_of(steps_.begin(), steps_.end(), [](double step) { return std::isfinite(step); });
    return stepped ? std::span<const double>(steps_) : std::span<const double>();
  }
  void fields(StateFields& state) override {
    if (!ensemble_) state.sized("theta", thetas_.front());
    state.part(history_);
    schedule_fields(state, schedule_, noise_round_);
    if (ensemble_) member_count(state, members_.size());
    for (std::size_t number = 0; number < members_.size(); ++number) {
      if (ensemble_) state.sized("theta", thetas_[number]);
      state.part(*members_[number].trainer);
    }
  }

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
                    std::uint32_t round) {
    Member& member = members_[number];
    std::optional<double> step;
    if (extent == TrainingExtent::kHistory) {
      const TrainingTask task{history_, labels(member, round), weigh_by_ndcg_, round,
                              prior_centre(number, round)};
      const std::vector<float> before = restart_ == Restart::kWarm ? std::vector<float>() : thetas_[number];
      restart(number, round);
      try {
        step = member.trainer->train(context, task, thetas_[number]);
      } catch (...) {
        if (restart_ != Restart::kWarm) thetas_[number] = before;
        throw;
      }
    } else {
      const ReplayTask task{history_,
                            {sample_, labels(member, sample_, member.perturbed)},
                            {history_changes_, labels(member, history_changes_, member.perturbed_changes)},
                            weigh_by_ndcg_,
                            round,
                            prior_centre(number, noise_round_)};
      step = member.trainer->replay(context, task, thetas_[number]);
    }
    steps_[number] = step.value_or(std::nan(""));
  }
  /// Moves the parameters of a member to where a training on the whole history starts.
  void restart(std::size_t number, std::uint32_t round) {
    if (restart_ == Restart::kFirst) thetas_[number] = first_thetas_[number];
    if (restart_ == Restart::kFresh)
      thetas_[number] = model_->first_parameters(key_of_round(members_[number].restart_key, round));
  }
  /// The centre of a member's prior, with the noise of `round`.
  std::span<const float> prior_centre(std::size_t number, std::uint32_t round) {
    const std::vector<float>& first = first_thetas_[number];
    if (prior_deviation_ == 0.0) return first;
    Member& member = members_[number];
    member.centre.resize(first.size());
    for (std::size_t parameter = 0; parameter < first.size(); ++parameter) {
      RngStream noise(member.prior_key, round, static_cast<std::uint32_t>(parameter));
      member.centre[parameter] =
          static_cast<float>(double{first[parameter]} + prior_deviation_ * noise.normal());
    }
    return member.centre;
  }
  std::span<const PairTerm> labels(Member& member, std::uint32_t round) const {
    const auto terms = history_.terms();
    if (!ensemble_) return terms;
    const double noise = std::sqrt(ensemble_->noise_variance);
    member.perturbed.assign(terms.begin(), terms.end());
    for (std::size_t term = 0; term < terms.size(); ++term) {
      RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(term));
      member.perturbed[term].labels =
          noisy_labels(terms[term].labels, terms[term].weight, noise, coins.normal());
    }
    return member.perturbed;
  }
  std::span<const PairTerm> labels(const Member& member, const TrainingSample& sample,
                                   std::vector<PairTerm>& perturbed) const {
    const auto terms = sample.terms();
    if (!ensemble_) return terms;
    const double deviation = std::sqrt(ensemble_->noise_variance);
    perturbed.assign(terms.begin(), terms.end());
    for (std::size_t local = 0; local < terms.size(); ++local) {
      const SampledLabels labels =
          noisy_sampled_labels(sample.sources()[local], member.noise_key, noise_round_, deviation);
      perturbed[local].labels = labels.own + labels.drawn;
    }
    return perturbed;
  }
  /// The error of the first member whose latest training failed, if any.
  void end_failed_training() {
    const auto failure =
        std::find_if(failures_.begin(), failures_.end(), [](const auto& one) { return one != nullptr; });
    if (failure == failures_.end()) return;
    thetas_ = before_;
    std::rethrow_exception(*failure);
  }

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

}  // namespace

std::unique_ptr<ModelLearner> make_network_learner(std::shared_ptr<const TangentModel> model,
                                                   const RankerSettings& settings, const TrialKeys& keys,
                                                   const std::optional<EnsembleSpec>& ensemble,
                                                   MemberThetas first_thetas) {
  return std::make_unique<NetworkLearner>(std::move(model), settings, keys, ensemble, first_thetas);
}

}  // namespace olrank
