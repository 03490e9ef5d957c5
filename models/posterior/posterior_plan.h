#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"

namespace olrank {

/// The cost of a round that compares V documents and observes k pairs after n pairs: floating-point
/// operations, and the bytes of the covariance with n pairs.
struct FormCost {
  double operations = 0.0;
  double bytes = 0.0;
};

FormCost dual_cost(const NetworkShape& shape, std::int64_t pairs, std::int64_t docs,
                   std::int64_t new_pairs);
FormCost primal_cost(const NetworkShape& shape, std::int64_t pairs, std::int64_t docs,
                     std::int64_t new_pairs);

/// Bytes while A⁻¹ of n pairs is computed: A⁻¹, half as much for its Cholesky factor, and the pairs'
/// factors with room to grow.
double primal_peak_bytes(const NetworkShape& shape, std::int64_t pairs);

/// Bytes while the orthonormal form of n pairs grows: its basis and its factor twice, and the pairs'
/// factors.
double orthonormal_peak_bytes(const NetworkShape& shape, std::int64_t pairs);

/// Operations of computing A⁻¹ of n pairs at once.
double conversion_operations(const NetworkShape& shape, std::int64_t pairs);

}  // namespace olrank
