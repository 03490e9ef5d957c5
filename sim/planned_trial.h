#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/online/labelled_queries.h"
#include "core/online/trial_keys.h"
#include "sim/experiment.h"
#include "sim/trial.h"
#include "sim/uniform_queries.h"

namespace olrank {

/// A trial of a plan with everything that it uses. Neither copied nor moved, as its parts point at each
/// other; plan, fold and execution have to outlive it.
struct PlannedTrial {
  PlannedTrial(const ExperimentPlan& plan, const ExperimentRanker& of_ranker, const ExperimentUser& of_user,
               const TrialIdentity& identity, const FoldData& fold, std::int64_t slot,
               ExecutionContext& execution)
      : ranker_plan(of_ranker),
        user_plan(of_user),
        keys(TrialKeys::of(static_cast<std::uint64_t>(identity.seed),
                           static_cast<std::uint64_t>(identity.fold), identity.user)),
        labels(fold.data.train),
        ranker(ranker_plan.make(ranker_data(fold.data, ranker_plan.needs_labels ? &labels : nullptr, slot),
                                keys)),
        fairness(make_fairness(plan, of_user, identity, fold)),
        queries(keys.key(Purpose::kQuery), fold.data.train.queries()),
        clicks(fold.recorded ? nullptr : user_plan.make(fold.data.max_grade)),
        trial(settings(plan, fold), fold.data,
              fold.recorded ? TrialUsers{.recorded = &*fold.recorded}
                            : TrialUsers{.queries = &queries,
                                         .clicks = clicks.get(),
                                         .fairness = fairness ? &*fairness : nullptr},
              keys, *ranker, execution) {}
  PlannedTrial(const PlannedTrial&) = delete;
  PlannedTrial& operator=(const PlannedTrial&) = delete;

  static TrialSettings settings(const ExperimentPlan& plan, const FoldData& fold) {
    TrialSettings settings = plan.trial;
    if (fold.recorded) settings.rounds = std::min(settings.rounds, fold.recorded->rounds());
    return settings;
  }

  /// With the fold's groups; none without any.
  static std::optional<TrialFairness> make_fairness(const ExperimentPlan& plan, const ExperimentUser& user,
                                                    const TrialIdentity& identity, const FoldData& fold) {
    if (!plan.groups || fold.recorded) return std::nullopt;
    const auto clicks = user.make(fold.data.max_grade);
    return make_trial_fairness(*plan.groups, fold.data.beta, *clicks, fold.data.train, plan.trial.cutoff,
                               identity.fold, identity.user)
        .fairness;
  }

  const ExperimentRanker& ranker_plan;
  const ExperimentUser& user_plan;
  TrialKeys keys;
  LabelledQueries labels;
  std::unique_ptr<OnlineRanker> ranker;
  std::optional<TrialFairness> fairness;
  UniformQueries queries;
  std::unique_ptr<ClickModel> clicks;
  Trial trial;
};

}  // namespace olrank
