#pragma once

#include <algorithm>

#include "core/fair/exposure.h"

namespace olrank {

/// Proportional control adds λ_c · err_t(G) to the scores of a group. Morik, Singh, Hong and Joachims,
/// "Controlling fairness and bias in dynamic learning-to-rank", SIGIR 2020, Section 5, with merits whose
/// ratios are β, that of B being 1, and exposures E summed over a group: err(G) = max over groups H of
/// E(H)/merit(H) − E(G)/merit(G), or 0. A group with too little exposure gets more. Of two groups err(A) =
/// max(0, −UF/β) and err(B) = max(0, UF/β).
inline double fair_control(const FairRound& fair, double gain, DocGroup group) {
  const ExposureRule& rule = *fair.rule;
  const std::size_t one = index_of(group);
  double error = 0.0;
  for (std::size_t other = 0; other < rule.groups(); ++other) {
    if (other == one) continue;
    const auto [first, second] = std::minmax(one, other);
    const double merit = first == 0 ? rule.beta.front() : rule.beta.front() / rule.beta[first - 1];
    const double lead_of_first = fair.unfairness[pair_of(first, second)] / merit;
    error = std::max(error, one == first ? -lead_of_first : lead_of_first);
  }
  return gain * error;
}

}  // namespace olrank
