#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/explore/order_bits.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"
#include "models/linear/newton_trainer.h"
#include "models/score_model.h"
#include "models/trainer_settings.h"

// What the linear rankers with confidence share.
namespace olrank {

std::int64_t padded_features(std::int64_t features);
NewtonTrainer::Options newton_options(const TrainerSettings& settings);

/// The weight c of c/2 ‖θ‖² beside a summed loss: λ for the sum form; 2λn for mean loss + λ‖θ‖², times n.
double ridge_weight(LossForm form, double lambda, std::int64_t observed);

/// Scores of one query's documents, and its documents best first. Throws NumericError for a score that is
/// not a number.
void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score);
void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score);

/// x_winner − x_loser of each pair, [pairs × features].
void write_difference_rows(FeatureMatrix docs, std::span<const PreferencePair> pairs,
                           std::span<double> rows);

/// Certain orders by document instead of by place: 1 where row i is certainly before column j.
void write_certain_matrix(const OrderBits& orders, std::span<const std::int32_t> by_score,
                          std::int64_t docs, std::vector<std::uint8_t>& matrix);

}  // namespace olrank
