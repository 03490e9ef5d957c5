#pragma once

#include <algorithm>

#include "core/fair/exposure.h"

namespace olrank {

/// What proportional control adds to the scores of a group: λ_c · err_t(G). Morik, Singh, Hong and
/// Joachims, "Controlling fairness and bias in dynamic learning-to-rank", SIGIR 2020, Section 5, with
/// merits whose ratio is β and exposures summed over a group: err(A) = max(0, −UF/β), err(B) = max(0,
/// UF/β). The group with too little exposure gets more.
inline double fair_control(const FairRound& fair, double gain, DocGroup group) {
  const double lead_of_a = fair.unfairness / fair.rule->beta;
  return gain * std::max(0.0, group == DocGroup::kA ? -lead_of_a : lead_of_a);
}

}  // namespace olrank
