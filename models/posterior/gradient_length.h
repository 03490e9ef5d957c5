#pragma once

#include <span>

#include "core/online/preference_pair.h"
#include "core/ops/tangent_factors.h"

namespace olrank {

/// ‖g‖² from a document's factors.
double gradient_length_sq(const TangentShape& shape, const float* factors);

/// Throws NumericError where a document of these pairs has more information than a covariance with λ takes
/// in: core/covariance/covariance_checks.h.
void require_information(const TangentShape& shape, double lambda, double scale, TangentFactors docs,
                         std::span<const PreferencePair> pairs);

}  // namespace olrank
