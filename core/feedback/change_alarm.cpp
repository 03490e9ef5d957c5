#include "core/feedback/change_alarm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace olrank {
namespace {

double surprise_of(std::span<const double> predicted, std::span<const std::uint8_t> clicks) {
  constexpr double kLeast = 1e-3;  // so that no click is impossible
  constexpr double kMost = 3.0;
  double surprise = 0.0;
  double variance = 0.1;
  for (std::size_t rank = 0; rank < clicks.size(); ++rank) {
    const double p = std::clamp(predicted[rank], kLeast, 1.0 - kLeast);
    const double logit = std::log(p / (1.0 - p));
    surprise += (p - (clicks[rank] != 0 ? 1.0 : 0.0)) * logit;
    variance += p * (1.0 - p) * logit * logit;
  }
  return std::clamp(surprise / std::sqrt(variance), -kMost, kMost);
}

}  // namespace

bool ChangeAlarm::learn(std::span<const double> predicted, std::span<const std::uint8_t> clicks) {
  constexpr double kMemory = 200.0;
  constexpr double kLeastVariance = 0.1;
  constexpr double kAllowed = 0.5;
  constexpr double kMostStep = 1.5;
  constexpr double kAlarm = 15.0;
  constexpr double kGrowth = 0.15;
  if (clicks.empty()) return false;
  const double distance = surprise_of(predicted, clicks) - usual_;
  all_ += 1.0;
  lists_ += 1.0;
  if (lists_ > silent_) {
    const double step = std::min(distance / std::sqrt(variance_) - kAllowed, kMostStep);
    sum_ = std::max(0.0, sum_ + step);
  }
  const double step = 1.0 / std::min(lists_, kMemory);
  usual_ += step * distance;
  variance_ += step * (std::max(distance * distance, kLeastVariance) - variance_);
  if (sum_ < kAlarm) return false;
  const double all = all_;
  *this = {};
  all_ = all;
  silent_ = std::max(kFirstLists, kGrowth * all);
  return true;
}

void ChangeAlarm::fields(StateFields& state, std::string_view name) {
  state.numbers(name, all_, lists_, silent_, usual_, variance_, sum_);
  for (const double number : {all_, lists_, silent_, usual_, variance_, sum_})
    state.require(std::isfinite(number), "A number of the alarm is not finite.");
  state.require(variance_ > 0.0, "The alarm's variance is not positive.");
}

}  // namespace olrank
