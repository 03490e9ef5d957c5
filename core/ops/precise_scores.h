#pragma once

#include <span>

#include "core/data/feature_matrix.h"
#include "core/ops/relu_network.h"
#include "core/runtime/scratch.h"

namespace olrank {

/// scores[i] = f(x_i; θ), as score_docs() but in double throughout and on the calling thread: for models
/// that leave the program and are compared with what others make of them. In the ntk parameterisation the
/// rounding of floats reaches 10⁻⁵ at m = 100. On the CPU alone.
void precise_scores(Scratch& scratch, const NetworkShape& shape, std::span<const double> theta,
                    FeatureMatrix docs, std::span<double> scores);

}  // namespace olrank
