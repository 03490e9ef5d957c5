#pragma once

#include <cstdint>
#include <span>

#include "core/covariance/dictionary_policy.h"
#include "models/posterior/lower_triangle.h"
#include "models/posterior/observed_pairs.h"

namespace olrank {

/// The dictionary Z of the inducing covariance: observed pairs with their factors, and C Cᵀ = s K_ZZ. A
/// gradient's coordinates z = C⁻¹ s k_Z are those of its part in the span of Z, in an orthonormal basis.
/// Pairs that are added leave earlier coordinates as they are. Copies share what both have; only one may
/// grow.
class InducingDictionary {
 public:
  InducingDictionary(const TangentShape& shape, double scale)
      : shape_(shape), scale_(scale), factors_(shape) {}

  std::int64_t members() const { return factors_.pairs(); }
  TangentFactors factors() const { return factors_.all(); }
  std::int64_t bytes() const;

  /// kernel [members × docs] = s k_Z, rows `docs.docs` numbers apart.
  void find_kernel(ExecutionContext& context, TangentFactors docs, double* kernel) const;
  /// kernel [members × pairs] of pairs, winner then loser.
  void find_pair_kernel(ExecutionContext& context, TangentFactors pairs, double* kernel) const;
  /// x [members × columns] ← C⁻¹ x.
  void project(ExecutionContext& context, std::int64_t columns, double* x) const;
  /// x [members × columns] ← C⁻ᵀ x.
  void solve_transposed(ExecutionContext& context, std::int64_t columns, double* x) const;
  /// R [rows × rows] with R C = F, `rows` the first members: columns [rows × columns] of Fᵀ ← those of Rᵀ.
  void divide(std::int64_t rows, std::int64_t columns, double* f) const;

  /// Decides by `policy` which of these pairs enter, and lets them. `pairs` are of `docs`; coordinates
  /// [members × pairs], rows `stride` numbers apart, are theirs; `residual` and `magnitudes` as for
  /// DictionaryPolicy::admit().
  Admission add(const DictionaryPolicy& policy, TangentFactors docs, std::span<const PreferencePair> pairs,
                std::span<const double> coordinates, std::int64_t stride,
                std::span<const double> magnitudes, std::span<double> residual);
  /// The same for pairs of which nothing is known yet, winner then loser.
  Admission add(ExecutionContext& context, const DictionaryPolicy& policy, TangentFactors pairs);
  /// Forgets the members from this number on.
  void truncate(std::int64_t members) {
    factors_.truncate(members);
    c_.truncate(members);
  }

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  TangentShape shape_;
  double scale_;
  ObservedPairs factors_;
  LowerTriangle c_;
};

}  // namespace olrank
