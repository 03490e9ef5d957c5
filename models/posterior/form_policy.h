#pragma once

#include <cstdint>

#include "core/ops/relu_network.h"
#include "models/posterior_settings.h"

namespace olrank {

/// Decides when a full covariance switches from the dual to the primal form: one rule, on CPU and device.
///
/// By operations: a round costs dual_cost() or primal_cost() operations, V the query's documents and
/// kUsualPairs new pairs. What rounds so far cost beyond the primal form is the excess. The switch pays
/// once the excess exceeds its own cost, conversion_operations(): p²n + p³. The total work then is at most
/// twice that of the best moment. The decision depends on the feedback alone, not on which queries were
/// ranked.
///
/// By memory: with n pairs the dual form takes dual_cost().bytes, n²/2 numbers of L⁻¹ in double and the
/// pairs' factors in float32. The switch frees L⁻¹ first and takes primal_peak_bytes(): p² numbers of A⁻¹
/// in double, half as many of its Cholesky factor while A⁻¹ is computed, and the pairs' factors twice, as
/// what grows doubles. If the dual form no longer fits, the covariance switches early; if the primal form
/// does not fit either, or `form` is fixed, observing throws.
class FormPolicy {
 public:
  /// `memory` bytes may be used; 0: no limit.
  FormPolicy(const NetworkShape& shape, CovarianceForm form, std::int64_t memory)
      : shape_(shape), form_(form), memory_(memory) {}

  /// To be called while the form is dual, before a query of `docs` documents adds `added` to `pairs`
  /// observed pairs: returns whether they are to be observed in primal form. Throws Error if no form fits.
  bool switches(std::int64_t pairs, std::int64_t added, std::int64_t docs);
  /// Whether the primal form fits with this many pairs.
  bool primal_fits(std::int64_t pairs) const;
  /// Whether so many bytes fit.
  bool fits(double bytes) const { return memory_ <= 0 || bytes <= static_cast<double>(memory_); }

  /// Operations beyond the primal form so far.
  double excess() const { return excess_; }
  void set_excess(double operations) { excess_ = operations; }

 private:
  static constexpr std::int64_t kUsualPairs = 4;

  NetworkShape shape_;
  CovarianceForm form_;
  std::int64_t memory_;
  double excess_ = 0.0;
};

}  // namespace olrank
