#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/metrics/random_online.h"

namespace olrank {

/// The lists of a trial's latest rounds, against random orders of their documents. They do not depend on
/// the number of rounds to come, so that a trial can be extended.
class LastLists {
 public:
  static constexpr std::int64_t kRounds = 200;

  void observe(double ndcg, const RandomNdcg& random);

  double mean_ndcg() const { return sum_of(&List::ndcg) / static_cast<double>(lists_.size()); }
  double random_ndcg() const { return sum_of(&List::random_mean) / static_cast<double>(lists_.size()); }
  /// Whether kRounds lists are worse than random ones by more than three standard deviations of random
  /// lists, which a random ranker is in one trial out of 740.
  bool worse_than_random() const;

  /// For checkpoints: three numbers a list, the oldest first.
  std::vector<double> values() const;
  void restore(std::span<const double> values);

 private:
  struct List {
    double ndcg = 0.0;
    double random_mean = 0.0;
    double random_variance = 0.0;
  };

  double sum_of(double List::*figure) const;

  std::deque<List> lists_;  // at most kRounds, the oldest first
};

}  // namespace olrank
