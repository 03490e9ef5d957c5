#pragma once

#include <array>
#include <cstdint>

#include "core/metrics/random_online.h"

namespace olrank {

/// The lists of a trial's last rounds, against random orders of their documents.
class LastLists {
 public:
  static constexpr std::int64_t kRounds = 200;

  void observe(double ndcg, const RandomNdcg& random);

  double mean_ndcg() const { return sums_[kNdcg] / sums_[kCount]; }
  double random_ndcg() const { return sums_[kRandom] / sums_[kCount]; }
  /// Whether kRounds lists are worse than random ones by more than three standard deviations of random
  /// lists, which a random ranker is in one trial out of 740.
  bool worse_than_random() const;

  /// For checkpoints.
  using Sums = std::array<double, 4>;
  const Sums& sums() const { return sums_; }
  void restore(const Sums& sums) { sums_ = sums; }

 private:
  enum Sum { kCount, kNdcg, kRandom, kVariance };
  Sums sums_{};
};

}  // namespace olrank
