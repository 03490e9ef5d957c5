#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "models/neural/document_history.h"
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
void schedule_fields(StateFields& state, RetrainingSchedule& schedule, std::uint32_t& noise_round);

/// Networks that are trained after each round. Members start at `first_thetas` where there are any, else at
/// drawn θ₀.
std::unique_ptr<ModelLearner> make_network_learner(std::shared_ptr<const TangentModel> model,
                                                   const RankerSettings& settings, const TrialKeys& keys,
                                                   const std::optional<EnsembleSpec>& ensemble,
                                                   MemberThetas first_thetas);

}  // namespace olrank
