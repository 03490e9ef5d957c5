#pragma once

#include <cstdint>

#include "core/ops/tangent_factors.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// Floating-point operations of a round that compares V documents and observes k pairs after n pairs.
double dual_operations(const TangentShape& shape, std::int64_t pairs, std::int64_t docs,
                       std::int64_t new_pairs);
double primal_operations(const TangentShape& shape, std::int64_t pairs, std::int64_t docs,
                         std::int64_t new_pairs);

/// Operations of computing A⁻¹ of n pairs at once.
double conversion_operations(const TangentShape& shape, std::int64_t pairs);

/// Where a covariance is kept, and how its memory grows there.
enum class PosteriorHome {
  kHost,         // L⁻¹ by row blocks; arrays double
  kDevice,       // L⁻¹ and the pairs' factors in place, by chunks; workspaces double
  kOlderDevice,  // all arrays double
};

/// The memory of a full covariance depends on these.
struct PosteriorLoad {
  TangentShape shape;
  PosteriorHome home = PosteriorHome::kHost;
  std::int64_t pairs = 0;  // n
  std::int64_t docs = 0;   // V, the most documents of a query
  std::int64_t added = 1;  // k, the most pairs of a round
};

/// Bytes that a full covariance of n pairs takes at most, including the moment in which it grows to that
/// size.
struct PosteriorBytes {
  double matrix = 0.0;     // L⁻¹ or A⁻¹
  double pairs = 0.0;      // the pairs' factors
  double workspace = 0.0;  // of a round, and on the host of computing A⁻¹

  double all() const { return matrix + pairs + workspace; }
};

/// Counts the bytes in dual form.
PosteriorBytes dual_bytes(const PosteriorLoad& load);
/// Counts them in primal form, which is computed after L⁻¹ was freed.
PosteriorBytes primal_bytes(const PosteriorLoad& load);
/// Counts them for the diagonal.
PosteriorBytes diagonal_bytes(const PosteriorLoad& load);
/// Counts them in orthonormal form, which only the host has: while it grows it is there twice.
PosteriorBytes orthonormal_bytes(const PosteriorLoad& load);
/// Counts the bytes of the inducing covariance with a dictionary of `budget` pairs, which has them once
/// that many were observed: more pairs take no more.
PosteriorBytes inducing_bytes(const PosteriorLoad& load, std::int64_t budget);

}  // namespace olrank
