#pragma once

#include <optional>
#include <span>

#include "core/data/dataset.h"
#include "core/online/online_ranker.h"
#include "sim/trial_settings.h"

namespace olrank {

/// The cosine of the angle between two vectors; none when one of them is zero.
std::optional<double> cosine_of(std::span<const float> a, std::span<const float> b);

/// The cosine of two models' scores of a data set, each centred within its query, as a constant added to a
/// query's scores changes no order.
std::optional<double> centred_cosine(const Dataset& data, std::span<const float> a,
                                     std::span<const float> b);

/// How near a model is to the offline one: the cosine of the parameters where the model is linear (of the
/// members' mean, for an ensemble), of the scores of the evaluated part for others.
std::optional<double> cosine_to_offline(const ModelTensors& model, const Dataset& eval_set,
                                        std::span<const float> eval_scores, const OfflineModel& offline);

}  // namespace olrank
