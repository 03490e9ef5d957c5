#pragma once

#include <optional>

#include "core/explore/certain_orders.h"
#include "core/explore/theory_alpha.h"

namespace olrank {

/// How a ranker decides which orders are certain: all of a CertaintyRule but what changes from round to
/// round.
struct CertaintyPolicy {
  double alpha = 0.0;                 // α
  std::optional<TheoryAlpha> theory;  // gives α instead, if set

  /// `log_det` is log(det A/det λI) of the covariance; score differences up to `least_difference` are
  /// rounding.
  CertaintyRule rule(double log_det, double least_difference) const {
    return {theory ? theory->at(log_det) : alpha, least_difference};
  }
};

}  // namespace olrank
