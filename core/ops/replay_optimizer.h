#pragma once

#include "core/ops/optimizer_step.h"

namespace olrank {

/// Steps on a sample of the history descend with this optimizer. Momentum would carry J gradients of the
/// same few pairs three times as far as plain steps do (12.1 instead of 4 step sizes for J = 4). The error
/// that a sample leaves grows with that distance; beyond what the history's curvature takes back, it adds
/// up from round to round. Adam's step does not grow with the gradient.
inline Optimizer optimizer_of_replay(Optimizer optimizer) {
  return optimizer == Optimizer::kNesterov ? Optimizer::kGradientDescent : optimizer;
}

}  // namespace olrank
