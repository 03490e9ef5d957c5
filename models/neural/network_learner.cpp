#include "models/neural/network_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/math/label_noise.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_kinds.h"

namespace olrank {

NetworkLearner::NetworkLearner(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                               const std::optional<EnsembleSpec>& ensemble, MemberThetas first_thetas)
    : pair_rule_(settings.feedback.pairs),
      weigh_by_ndcg_(row_of(settings.kind).weighs_by_ndcg),
      ensemble_(ensemble),
      history_(features, weigh_by_ndcg_),
      first_thetas_(first_thetas.begin(), first_thetas.end()) {
  const NetworkShape shape = network_shape(settings.network, features);
  if (first_thetas_.empty()) {
    const auto members = static_cast<std::uint64_t>(ensemble ? ensemble->members : 1);
    for (std::uint64_t member = 0; member < members; ++member) {
      const PhiloxKey key = keys.key(Purpose::kInitialisation, member);
      first_thetas_.push_back(first_parameters(settings.network, shape, key));
    }
  }
  thetas_ = first_thetas_;
  for (std::size_t member = 0; member < thetas_.size(); ++member) {
    members_.push_back({keys.key(Purpose::kLabelNoise, member),
                        make_network_trainer({shape, settings.trainer, settings.posterior.lambda,
                                              prior_weight(settings.network, settings.posterior.lambda),
                                              first_thetas_[member], keys.key(Purpose::kBatch, member)}),
                        {}});
  }
}

void NetworkLearner::observe(const Feedback& feedback, std::span<const PreferencePair> pairs) {
  loss_pairs(pair_rule_, feedback.shown, feedback.clicks, pairs, loss_pairs_);
  history_.add(feedback, loss_pairs_.pairs, loss_pairs_.weight);
}

std::span<const double> NetworkLearner::train(ExecutionContext& context, std::uint32_t round) {
  const auto count = std::ssize(members_);
  steps_.resize(members_.size());
  if (!ensemble_) {
    train_member(context, 0, round);
  } else {
    while (static_cast<int>(worker_contexts_.size()) < context.threads())
      worker_contexts_.push_back(std::make_unique<ExecutionContext>());
    before_ = thetas_;
    failures_.assign(count, nullptr);
    context.for_blocks(count, 1, [this, round](std::int64_t member, std::int64_t, int worker) {
      try {
        train_member(*worker_contexts_[worker], static_cast<std::size_t>(member), round);
      } catch (...) {
        failures_[member] = std::current_exception();
      }
    });
    // All members train, so that what follows a failure does not depend on the number of threads.
    for (const std::exception_ptr& failure : failures_) {
      if (!failure) continue;
      thetas_ = before_;
      std::rethrow_exception(failure);
    }
  }
  const bool stepped =
      std::all_of(steps_.begin(), steps_.end(), [](double step) { return std::isfinite(step); });
  return stepped ? std::span<const double>(steps_) : std::span<const double>();
}

void NetworkLearner::train_member(ExecutionContext& context, std::size_t number, std::uint32_t round) {
  Member& member = members_[number];
  const TrainingTask task{history_, labels(member, round), weigh_by_ndcg_, round};
  steps_[number] = member.trainer->train(context, task, thetas_[number]).value_or(std::nan(""));
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

void NetworkLearner::save(StateWriter& state) const {
  if (!ensemble_) {
    state.put("theta", thetas_.front());
    history_.save(state);
    members_.front().trainer->save(state);
    return;
  }
  history_.save(state);
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
    members_.front().trainer->load(state);
    return;
  }
  history_.load(state);
  require_members(state, members_.size());
  for (std::size_t number = 0; number < members_.size(); ++number) {
    state.get_into("theta", std::span(thetas_[number]));
    members_[number].trainer->load(state);
  }
}

}  // namespace olrank
