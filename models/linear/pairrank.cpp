#include "models/linear/pairrank.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/math/normal.h"
#include "models/linear/linear_belief.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {

std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  RowCovariance covariance(settings.posterior.covariance, request.features, settings.posterior.lambda);
  CertainOrderRanker::Parts parts;
  parts.belief = std::make_unique<LinearWidths>(request.features, std::move(covariance));
  parts.learner = std::make_unique<LinearLearner>(request.features, settings, request.keys, std::nullopt);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  set_newton_defaults(settings.trainer);
  if (context.protocol == ProtocolName::kReference) return;
  // Chosen by their worst case, those of the paper's pairs by the first sweeps: docs/DEFAULTS.md.
  settings.posterior.lambda = 100.0;
  if (context.protocol == ProtocolName::kPaper) {
    settings.explore.alpha = 0.003;
    settings.explore.c1 = 0.0003;
    return;
  }
  settings.feedback.pairs = PairRule::kMatched;
  settings.explore.alpha = 0.1;
  settings.explore.c1 = 0.01;
  settings.explore.c2 = 0.1;
  settings.explore.delta = 0.01;
}

std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const EnsembleSpec ensemble{settings.posterior.members, settings.posterior.noise_variance};
  CertainOrderRanker::Parts parts;
  parts.belief = std::make_unique<LinearVotes>(request.features);
  parts.learner = std::make_unique<LinearLearner>(request.features, settings, request.keys, ensemble);
  return std::make_unique<CertainOrderRanker>(settings, request.keys, request.cutoff, std::move(parts));
}

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  set_newton_defaults(settings.trainer);
  if (context.protocol == ProtocolName::kReference) return;
  // Chosen by their worst case: docs/DEFAULTS.md.
  settings.posterior.noise_variance = 0.003;
  settings.posterior.lambda = 100.0;
  if (context.protocol == ProtocolName::kRecommended) settings.feedback.pairs = PairRule::kMatched;
}

LinearLearner::LinearLearner(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                             const std::optional<EnsembleSpec>& ensemble)
    : settings_(settings.trainer),
      lambda_(settings.posterior.lambda),
      ensemble_(ensemble),
      history_(features, FoldedPairs::kPadding),
      schedule_(settings_.retraining()),
      replay_key_(keys.key(Purpose::kReplay)),
      thetas_(ensemble ? static_cast<std::size_t>(ensemble->members) : 1, std::vector<float>(features)) {
  for (std::size_t member = 0; member < thetas_.size(); ++member) {
    members_.push_back({keys.key(Purpose::kLabelNoise, member),
                        NewtonTrainer(padded_features(features), newton_options(settings_)),
                        {}});
  }
}

void LinearLearner::observe(const Feedback& feedback, const LossPairs& loss) {
  assert(loss.weight == 1.0);
  history_.add(feedback.query, loss.pairs);
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

bool LinearLearner::trains_without_pairs() const {
  return ensemble_ && settings_.retrain == Retrain::kEveryRound && history_.observed() > 0;
}

RetrainingSchedule::Sizes LinearLearner::sizes() const {
  return {history_.observed(), history_.row_count()};
}

bool LinearLearner::can_replay() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.trainer.can_replay(); });
}

std::span<const double> LinearLearner::train(ExecutionContext& context, std::uint32_t round) {
  const TrainingExtent extent = schedule_.extent(sizes());
  if (extent == TrainingExtent::kNothing) return {};
  const double ridge = ridge_weight(settings_.loss, lambda_, history_.observed());
  std::vector<std::vector<double>> before;
  for (const Member& member : members_)
    before.emplace_back(member.trainer.theta().begin(), member.trainer.theta().end());
  try {
    if (extent == TrainingExtent::kSample && can_replay()) {
      train_on_sample(context, round, ridge);
    } else {
      train_on_history(context, round, ridge);
    }
  } catch (const NumericError&) {
    for (std::size_t number = 0; number < members_.size(); ++number)
      members_[number].trainer.restore(before[number]);
    throw;
  }
  for (std::size_t number = 0; number < members_.size(); ++number) take_parameters(number);
  return {};
}

void LinearLearner::train_on_history(ExecutionContext& context, std::uint32_t round, double ridge) {
  schedule_.set_latest({});  // should it fail, the next one is due
  for (Member& member : members_) {
    const FoldedPairs pairs{history_.rows().data(), history_.row_count(), history_.stride(),
                            labels(member, round).data(), history_.count().data()};
    member.last_training = member.trainer.train(context, pairs, history_.observed(), ridge);
  }
  schedule_.trained(sizes());
}

void LinearLearner::train_on_sample(ExecutionContext& context, std::uint32_t round, double ridge) {
  sample_rows_.clear();
  sample_weights_.clear();
  const auto take = [&](std::int64_t row, double weight) {
    const double* values = history_.row(row);
    sample_rows_.insert(sample_rows_.end(), values, values + history_.stride());
    sample_weights_.push_back(weight);
  };
  for (const PairHistory::Observation& own : history_.latest()) take(own.row, 1.0);
  const std::int64_t earlier = history_.earlier();
  const std::int64_t draws = earlier > 0 ? settings_.replay : 0;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    take(history_.draw_earlier(replay_key_, round, static_cast<std::uint32_t>(draw)),
         static_cast<double>(earlier) / static_cast<double>(draws));
  }
  const FoldedPairs sample{sample_rows_.data(), std::ssize(sample_weights_), history_.stride(), nullptr,
                           sample_weights_.data()};
  for (Member& member : members_) {
    follow_history(member, round);
    member.last_training =
        member.trainer.replay(context, sample, settings_.replay_steps, history_.observed(), ridge);
  }
}

void LinearLearner::follow_history(Member& member, std::uint32_t round) const {
  std::uint32_t place = 0;
  for (const PairHistory::Observation& own : history_.latest()) {
    double label = own.first_wins ? 1.0 : 0.0;
    if (ensemble_) {
      RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(own.row), place++);
      label = noisy_labels(label, 1.0, std::sqrt(ensemble_->noise_variance), coins.normal());
    }
    member.trainer.take_in(history_.row(own.row), 1.0, label);
  }
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

void LinearLearner::Member::report_fields(StateFields& state) {
  state.numbers("training.gradient_norm", last_training.gradient_norm);
  state.numbers("training.optimality_gap", last_training.optimality_gap);
}

void LinearLearner::fields(StateFields& state) {
  if (settings_.retrain == Retrain::kGrowth) {
    auto [observed, distinct] = schedule_.latest();
    // Both are there twice, as checkpoints have them since histories could forget pairs.
    std::int64_t distinct_again = distinct, observed_again = observed;
    state.numbers("training.latest", observed, distinct, distinct_again, observed_again);
    if (state.reads()) schedule_.set_latest({observed, distinct});
  }
  if (!ensemble_) {
    members_.front().trainer.fields(state);
    history_.fields(state);
  } else {
    history_.fields(state);
    member_count(state, members_.size());
    for (Member& member : members_) {
      member.trainer.fields(state);
      member.report_fields(state);
    }
  }
  if (!state.reads()) return;
  for (std::size_t number = 0; number < members_.size(); ++number) take_parameters(number);
}

void LinearLearner::figure_fields(StateFields& state) {
  if (!ensemble_) members_.front().report_fields(state);
}

}  // namespace olrank
