#pragma once

#include <optional>
#include <span>

#include "core/data/dataset.h"
#include "core/online/online_ranker.h"
#include "sim/trial_settings.h"

namespace olrank {

/// The cosine of the angle between two vectors; none when one of them is zero.
std::optional<double> cosine_of(std::span<const float> a, std::span<const float> b);

/// The cosine of two models' scores of a data set. Scores are centred within each query, because adding a
/// constant to a query's scores does not change the order.
std::optional<double> centred_cosine(const Dataset& data, std::span<const float> a,
                                     std::span<const float> b);

/// The similarity of a model to the offline model: the cosine of the parameters for a linear model (the
/// members' mean for an ensemble), otherwise the cosine of the scores of the evaluated part.
std::optional<double> cosine_to_offline(const ModelTensors& model, const Dataset& eval_set,
                                        std::span<const float> eval_scores, const OfflineModel& offline);

}  // namespace olrank
