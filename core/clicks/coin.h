#pragma once

#include <cmath>

namespace olrank {

/// A prior holds what is counted before anything is seen. The estimate is then the largest posterior under
/// a prior Beta(yes + 1, no + 1), which is never 0 or 1.
struct CoinPrior {
  double yes = 1.0;
  double no = 1.0;
};

/// A probability with its expected counts of yes and no. Every parameter of a click model is one.
struct Coin {
  double probability = 0.5;
  double yes = 0.0;
  double no = 0.0;

  void count(double more_yes, double more_no) {
    yes += more_yes;
    no += more_no;
  }
  /// The most likely probability; counting starts again.
  void maximise(const CoinPrior& prior) {
    probability = (prior.yes + yes) / (prior.yes + prior.no + yes + no);
    yes = 0.0;
    no = 0.0;
  }
  /// ln of the prior's density, but for a constant.
  double log_prior(const CoinPrior& prior) const {
    return prior.yes * std::log(probability) + prior.no * std::log1p(-probability);
  }
};

}  // namespace olrank
