#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/io/state_fields.h"

namespace olrank {

/// Rings when users have changed: when clicks become less likely under a ranker's predictions than they
/// were. The surprise of a list is how far the log-likelihood of its clicks is below the expected one, in
/// standard deviations. A CUSUM sums up how far surprises are above their running mean, in their running
/// standard deviation and less ½, and rings at 15. One list adds at most 1.5, so that ten lists at least
/// are behind an alarm. If surprises were normal and independent, a false alarm would come every 20 million
/// lists (Siegmund's approximation), and a lasting surprise of 1.5 deviations would ring after 15 lists.
/// Lasting errors of the predictions do not ring. After an alarm the next one needs 15 % more lists than
/// there were, so that strange clicks cannot make a ranker forget again and again.
class ChangeAlarm {
 public:
  /// `predicted` is the probability of a click at each rank, from before the list was learned. True if the
  /// alarm rings. It then learns the usual surprise from the start.
  bool learn(std::span<const double> predicted, std::span<const std::uint8_t> clicks);

  void fields(StateFields& state, std::string_view name);

 private:
  static constexpr double kFirstLists = 100.0;  // in which nothing is usual yet

  double all_ = 0.0;             // lists
  double lists_ = 0.0;           // since the latest alarm
  double silent_ = kFirstLists;  // lists after the latest alarm without another one
  double usual_ = 0.0;           // running mean of surprises
  double variance_ = 1.0;        // running variance of surprises
  double sum_ = 0.0;
};

}  // namespace olrank
