#pragma once

#include <span>

#include "core/data/dataset.h"
#include "core/ops/relu_network.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// scores[i] = f(x_i; θ) in double throughout, on the calling thread and on the CPU only: for exported
/// models, whose scores are compared with those of other programs. In the ntk parameterisation float32
/// rounding reaches 10⁻⁵ at m = 100.
void precise_scores(Scratch& scratch, const NetworkShape& shape, std::span<const double> theta,
                    FeatureMatrix docs, std::span<double> scores);

}  // namespace olrank
