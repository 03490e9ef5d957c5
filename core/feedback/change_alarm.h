#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/io/state_archive.h"

namespace olrank {

/// Notices that users have changed, by clicks that are less likely than predictions that were right until
/// now say. The surprise of a list is how far the log-likelihood of its clicks is below the one that the
/// predictions expect, in standard deviations. A CUSUM sums up how far surprises are above their usual
/// mean, less half of their usual deviation, and rings at 15 deviations. If surprises were normal and
/// independent, false alarms would come every 20 million lists (Siegmund's approximation), and a lasting
/// surprise of 1.5 deviations would ring after 15 lists. Predictions that are wrong in the same way all the
/// time do not ring.
class ChangeAlarm {
 public:
  /// `predicted` is the probability of a click at each rank, from before the list was learned. True if the
  /// alarm rings; what is usual is then found again.
  bool learn(std::span<const double> predicted, std::span<const std::uint8_t> clicks);

  void save(StateWriter& state, std::string_view name) const;
  void load(StateReader& state, std::string_view name);

 private:
  double lists_ = 0.0;     // since the start or the latest alarm
  double usual_ = 0.0;     // mean surprise of late
  double variance_ = 1.0;  // of surprises of late
  double sum_ = 0.0;
};

}  // namespace olrank
