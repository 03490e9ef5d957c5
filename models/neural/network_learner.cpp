#include "models/neural/network_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "models/neural/ranker_network.h"
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

void save_schedule(StateWriter& state, const RetrainingSchedule& schedule, std::uint32_t noise_round) {
  if (schedule.rule().retrain == Retrain::kEveryRound) return;
  const auto [observed, distinct] = schedule.latest();
  // Both are there twice, as checkpoints have them since histories could forget pairs.
  state.put("schedule.latest", std::vector{observed, distinct, distinct, observed});
  state.put("noise_round", noise_round);
}

void load_schedule(StateReader& state, RetrainingSchedule& schedule, std::uint32_t& noise_round) {
  if (schedule.rule().retrain == Retrain::kEveryRound) return;
  std::vector<std::int64_t> latest(4);
  state.get_into("schedule.latest", std::span(latest));
  schedule.set_latest({latest[0], latest[1]});
  noise_round = state.get_one<std::uint32_t>("noise_round");
}

NetworkLearner::NetworkLearner(std::shared_ptr<const TangentModel> model, const RankerSettings& settings,
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
    members_.push_back({keys.key(Purpose::kLabelNoise, member),
                        keys.key(Purpose::kRestart, member),
                        keys.key(Purpose::kPriorNoise, member),
                        make_network_trainer({*model_, settings.trainer, settings.posterior.lambda, weight,
                                              first_thetas_[member], keys.key(Purpose::kBatch, member)}),
                        {},
                        {},
                        {}});
  }
}

void NetworkLearner::observe(const Feedback& feedback, const LossPairs& loss) {
  history_.add(feedback, loss.pairs, loss.weight);
  brought_pairs_ = true;
}

bool NetworkLearner::trains_without_pairs() const {
  return ensemble_ && schedule_.rule().retrain == Retrain::kEveryRound && history_.observed() > 0;
}

std::span<const double> NetworkLearner::train(ExecutionContext& context, std::uint32_t round) {
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

void NetworkLearner::end_failed_training() {
  const auto failure =
      std::find_if(failures_.begin(), failures_.end(), [](const auto& one) { return one != nullptr; });
  if (failure == failures_.end()) return;
  thetas_ = before_;
  std::rethrow_exception(*failure);
}

void NetworkLearner::train_member(ExecutionContext& context, std::size_t number, TrainingExtent extent,
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

void NetworkLearner::restart(std::size_t number, std::uint32_t round) {
  if (restart_ == Restart::kFirst) thetas_[number] = first_thetas_[number];
  if (restart_ == Restart::kFresh)
    thetas_[number] = model_->first_parameters(key_of_round(members_[number].restart_key, round));
}

std::span<const float> NetworkLearner::prior_centre(std::size_t number, std::uint32_t round) {
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

std::span<const PairTerm> NetworkLearner::labels(Member& member, std::uint32_t round) const {
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

std::span<const PairTerm> NetworkLearner::labels(const Member& member, const TrainingSample& sample,
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

void NetworkLearner::save(StateWriter& state) const {
  if (!ensemble_) {
    state.put("theta", thetas_.front());
    history_.save(state);
    save_schedule(state, schedule_, noise_round_);
    members_.front().trainer->save(state);
    return;
  }
  history_.save(state);
  save_schedule(state, schedule_, noise_round_);
  state.put("members", std::ssize(members_));
  for (std::size_t number = 0; number < members_.size(); ++number) {
    state.put("theta", thetas_[number]);
    members_[number].trainer->save(state);
  }
}

void NetworkLearner::load(StateReader& state) {
  if (!ensemble_) {
    state.get_into("theta", std::span(thetas_.front()));
    history_.load(state);
    load_schedule(state, schedule_, noise_round_);
    members_.front().trainer->load(state);
    return;
  }
  history_.load(state);
  load_schedule(state, schedule_, noise_round_);
  StateFields fields(state);
  member_count(fields, members_.size());
  for (std::size_t number = 0; number < members_.size(); ++number) {
    state.get_into("theta", std::span(thetas_[number]));
    members_[number].trainer->load(state);
  }
}

}  // namespace olrank
