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

void ChangeAlarm::save(StateWriter& state, std::string_view name) const {
  state.put(std::string(name), std::vector<double>{all_, lists_, silent_, usual_, variance_, sum_});
}

void ChangeAlarm::load(StateReader& state, std::string_view name) {
  double numbers[6] = {};
  state.get_into(std::string(name), std::span<double>(numbers));
  for (const double number : numbers) {
    if (!std::isfinite(number)) state.fail("A number of the alarm is not finite.");
  }
  if (numbers[4] <= 0.0) state.fail("The alarm's variance is not positive.");
  all_ = numbers[0];
  lists_ = numbers[1];
  silent_ = numbers[2];
  usual_ = numbers[3];
  variance_ = numbers[4];
  sum_ = numbers[5];
}

}  // namespace olrank
