#pragma once

#include <cstdint>

#include "core/explore/certain_orders.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// rule->alpha = α_t at log_det [1]. Both pointers are to device memory.
void set_theory_alpha(Stream stream, const TheoryAlpha& theory, const double* log_det, CertaintyRule* rule);

/// log_det [1] = Σ_k log(diagonal[k]/λ), in a fixed order.
void diagonal_log_det(Stream stream, std::int64_t parameters, const double* diagonal, double lambda,
                      double* log_det);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
