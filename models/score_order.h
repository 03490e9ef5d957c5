#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/explore/order_bits.h"
#include "core/runtime/execution_context.h"
#include "models/score_model.h"

// What rankers with certain orders do with scores.
namespace olrank {

/// Scores of one query's documents, and its documents best first. Throws NumericError for a score that is
/// not a number.
void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score);
void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score);

/// Certain orders by document instead of by place: 1 where row i is certainly before column j.
void write_certain_matrix(const OrderBits& orders, std::span<const std::int32_t> by_score,
                          std::int64_t docs, std::vector<std::uint8_t>& matrix);

}  // namespace olrank
