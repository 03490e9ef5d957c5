#include "sim/last_lists.h"

#include <cmath>

namespace olrank {

void LastLists::observe(double ndcg, const RandomNdcg& random) {
  sums_[kCount] += 1.0;
  sums_[kNdcg] += ndcg;
  sums_[kRandom] += random.mean;
  sums_[kVariance] += random.variance;
}

bool LastLists::worse_than_random() const {
  constexpr double kDeviations = 3.0;
  if (sums_[kCount] < static_cast<double>(kRounds)) return false;
  return sums_[kNdcg] - sums_[kRandom] < -kDeviations * std::sqrt(sums_[kVariance]);
}

}  // namespace olrank
