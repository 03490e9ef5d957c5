#pragma once

#include <cstdint>
#include <string>

#include "core/ops/relu_network.h"

namespace olrank {

/// Costs of one usual round (V documents to compare, k pairs to observe) with n pairs so far, in floating-
/// point operations, and memory in bytes.
struct FormCost {
  double operations = 0.0;
  double bytes = 0.0;
};

FormCost dual_cost(const NetworkShape& shape, std::int64_t pairs, std::int64_t docs,
                   std::int64_t new_pairs);
FormCost primal_cost(const NetworkShape& shape, std::int64_t pairs, std::int64_t docs,
                     std::int64_t new_pairs);

/// The number of pairs from which the primal form is the cheaper one; at least 1.
std::int64_t primal_pays_from(const NetworkShape& shape, std::int64_t docs, std::int64_t new_pairs);

/// Operations of turning n pairs into A⁻¹ at once.
double conversion_operations(const NetworkShape& shape, std::int64_t pairs);

}  // namespace olrank
