#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "models/score_model.h"

namespace olrank {

/// Scores of one query's documents, and the documents best first. Throws NumericError for a score that is
/// NaN.
void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score);
void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score);

}  // namespace olrank
