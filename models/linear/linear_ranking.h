#pragma once

#include <cstdint>
#include <span>

#include "core/data/dataset.h"
#include "core/online/online_ranker.h"
#include "models/linear/newton_trainer.h"
#include "models/skeleton/trainer_settings.h"

// What linear rankers with certain orders share.
namespace olrank {

std::int64_t padded_features(std::int64_t features);
NewtonTrainer::Options newton_options(const TrainerSettings& settings);
/// Steps and tolerance of Newton's method.
void set_newton_defaults(TrainerSettings& settings);

/// The weight c of c/2 ‖θ‖² added to a summed loss: λ for the sum form; 2λn for mean loss + λ‖θ‖², times n.
double ridge_weight(LossForm form, double lambda, std::int64_t observed);

/// x_winner − x_loser of each pair, [pairs × features].
void write_difference_rows(FeatureMatrix docs, std::span<const PreferencePair> pairs,
                           std::span<double> rows);

}  // namespace olrank
