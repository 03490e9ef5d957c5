#include "core/feedback/change_alarm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace olrank {
namespace {

double surprise_of(std::span<const double> predicted, std::span<const std::uint8_t> clicks) {
  constexpr double kLeast = 1e-3;  // a single click is not a change
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
  constexpr double kFirstLists = 100.0;  // in which nothing is usual yet
  constexpr double kMemory = 200.0;
  constexpr double kLeastVariance = 0.1;
  constexpr double kAllowed = 0.5;
  constexpr double kAlarm = 15.0;
  if (clicks.empty()) return false;
  const double distance = surprise_of(predicted, clicks) - usual_;
  lists_ += 1.0;
  if (lists_ > kFirstLists) sum_ = std::max(0.0, sum_ + distance / std::sqrt(variance_) - kAllowed);
  const double step = 1.0 / std::min(lists_, kMemory);
  usual_ += step * distance;
  variance_ += step * (std::max(distance * distance, kLeastVariance) - variance_);
  if (sum_ < kAlarm) return false;
  *this = {};
  return true;
}

void ChangeAlarm::save(StateWriter& state, std::string_view name) const {
  state.put(std::string(name), std::vector<double>{lists_, usual_, variance_, sum_});
}

void ChangeAlarm::load(StateReader& state, std::string_view name) {
  double numbers[4] = {};
  state.get_into(std::string(name), std::span<double>(numbers));
  lists_ = numbers[0];
  usual_ = numbers[1];
  variance_ = numbers[2];
  sum_ = numbers[3];
}

}  // namespace olrank
