#pragma once

#include "models/skeleton/belief.h"
#include "models/skeleton/score_model.h"

// What ensembles of linear models and of networks share.
namespace olrank {

/// The evidence of votes.
Evidence take_votes(Scratch& scratch, std::int64_t members, std::int64_t docs);

/// The tensors of all members: "members.0.linear.weight", …
ModelTensors ensemble_tensors(const ScoreModel& model, MemberThetas thetas);

}  // namespace olrank
