#pragma once

#include <chrono>

namespace olrank {

/// Seconds on the clock since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace olrank
