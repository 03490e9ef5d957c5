#include "models/linear/linear_learner.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/math/label_noise.h"
#include "models/linear/linear_ranking.h"

namespace olrank {

LinearLearner::LinearLearner(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                             const std::optional<EnsembleSpec>& ensemble)
    : settings_(settings.trainer),
      lambda_(settings.posterior.lambda),
      ensemble_(ensemble),
      history_(features, FoldedPairs::kPadding),
      thetas_(ensemble ? static_cast<std::size_t>(ensemble->members) : 1, std::vector<float>(features)) {
  for (std::size_t member = 0; member < thetas_.size(); ++member) {
    members_.push_back({keys.key(Purpose::kLabelNoise, member),
                        NewtonTrainer(padded_features(features), newton_options(settings_)),
                        {}});
  }
}

void LinearLearner::observe(const Feedback& feedback, std::span<const PreferencePair> pairs) {
  history_.add(feedback.query, pairs);
}

std::span<const double> LinearLearner::labels(const Member& member, std::uint32_t round) {
  const auto wins = history_.first_wins();
  if (!ensemble_) return wins;
  const double noise = std::sqrt(ensemble_->noise_variance);
  const auto count = history_.count();
  perturbed_wins_.resize(wins.size());
  for (std::size_t pair = 0; pair < wins.size(); ++pair) {
    RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(pair));
    perturbed_wins_[pair] = noisy_labels(wins[pair], count[pair], noise, coins.normal());
  }
  return perturbed_wins_;
}

std::span<const double> LinearLearner::train(ExecutionContext& context, std::uint32_t round) {
  const double ridge = ridge_weight(settings_.loss, lambda_, history_.observed());
  std::vector<std::vector<double>> before;
  for (const Member& member : members_)
    before.emplace_back(member.trainer.theta().begin(), member.trainer.theta().end());
  try {
    for (Member& member : members_) {
      const FoldedPairs pairs{history_.rows().data(), history_.distinct(), history_.stride(),
                              labels(member, round).data(), history_.count().data()};
      member.last_training = member.trainer.train(context, pairs, history_.observed(), ridge);
    }
  } catch (const NumericError&) {
    for (std::size_t number = 0; number < members_.size(); ++number)
      members_[number].trainer.restore(before[number]);
    throw;
  }
  for (std::size_t number = 0; number < members_.size(); ++number) take_parameters(number);
  return {};
}

void LinearLearner::take_parameters(std::size_t member) {
  const auto exact = members_[member].trainer.theta();
  std::vector<float>& theta = thetas_[member];
  for (std::size_t k = 0; k < theta.size(); ++k) theta[k] = static_cast<float>(exact[k]);
}

std::vector<RankerFigure> LinearLearner::figures() const {
  double gap = 0.0;
  double gradient = 0.0;
  for (const Member& member : members_) {
    gap = std::max(gap, member.last_training.optimality_gap);
    gradient = std::max(gradient, member.last_training.gradient_norm);
  }
  return {{"optimality_gap", gap}, {"gradient_norm", gradient}};
}

void LinearLearner::Member::save_report(StateWriter& state) const {
  state.put("training.gradient_norm", last_training.gradient_norm);
  state.put("training.optimality_gap", last_training.optimality_gap);
}

void LinearLearner::Member::load_report(StateReader& state) {
  last_training.gradient_norm = state.get_one<double>("training.gradient_norm");
  last_training.optimality_gap = state.get_one<double>("training.optimality_gap");
}

void LinearLearner::save(StateWriter& state) const {
  if (!ensemble_) {
    members_.front().trainer.save(state);
    history_.save(state);
    return;
  }
  history_.save(state);
  state.put("members", std::ssize(members_));
  for (const Member& member : members_) {
    member.trainer.save(state);
    member.save_report(state);
  }
}

void LinearLearner::load(StateReader& state) {
  if (!ensemble_) {
    members_.front().trainer.load(state);
    history_.load(state);
  } else {
    history_.load(state);
    require_members(state, members_.size());
    for (Member& member : members_) {
      member.trainer.load(state);
      member.load_report(state);
    }
  }
  for (std::size_t number = 0; number < members_.size(); ++number) take_parameters(number);
}

void LinearLearner::save_figures(StateWriter& state) const {
  if (!ensemble_) members_.front().save_report(state);
}

void LinearLearner::load_figures(StateReader& state) {
  if (!ensemble_) members_.front().load_report(state);
}

}  // namespace olrank
