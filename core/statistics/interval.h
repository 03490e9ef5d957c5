#pragma once

namespace olrank {

/// A figure and the interval in which it lies.
struct Interval {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

}  // namespace olrank
