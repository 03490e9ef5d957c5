#pragma once

#include <cstdint>

#include "core/runtime/execution_context.h"

namespace olrank {

/// Returns what the expected DCG@k of Plackett–Luce lists with weights e^{sharpness · s} lacks of k
/// documents with `most_gain` each, exact to 1e-12, and its slopes by the scores: list_loss() of kSmoothDcg
/// for `ranks` k. `docs` is positive; scores are finite, and `gains` and `slopes` have one number each.
double smooth_dcg_top(const double* scores, const double* gains, std::int64_t docs, double most_gain,
                      double sharpness, std::int64_t ranks, Scratch& scratch, double* slopes);

}  // namespace olrank
