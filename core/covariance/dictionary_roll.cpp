#include "core/covariance/dictionary_roll.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace olrank {

void DictionaryRoll::add(std::span<const double> residual, std::span<const double> magnitudes,
                         const Admission& admission) {
  const auto count = std::ssize(magnitudes);
  for (const std::int64_t pair : admission.entered) members_.push_back(pairs_ + pair);
  for (std::int64_t pair = 0; pair < count; ++pair) {
    const bool adds = policy_.is_new(residual[pair * (count + 1)], magnitudes[pair]);
    priorities_.push_back(adds ? DictionaryPolicy::priority(pairs_ + pair) : -1.0);
  }
  pairs_ += count;
}

bool DictionaryRoll::choose() {
  if (waiting_ >= 0 && !policy_.replaces(waiting_ + pairs_ - counted_) && !is_leaving(oldest_waiting_))
    return false;
  std::vector<std::int64_t> candidates;
  std::vector<double> priorities;
  const std::int64_t first = first_of_window();
  for (const std::int64_t number : members_) {
    if (number >= first) break;
    candidates.push_back(number);
    priorities.push_back(DictionaryPolicy::priority(number));
  }
  for (std::int64_t pair = 0; pair < std::ssize(priorities_); ++pair) {
    if (priorities_[pair] < 0.0) continue;
    candidates.push_back(first + pair);
    priorities.push_back(priorities_[pair]);
  }
  chosen_ = policy_.choose(priorities);
  waiting_ = 0;
  oldest_waiting_ = pairs_;
  for (std::int64_t& number : chosen_) {
    number = candidates[number];
    if (std::binary_search(members_.begin(), members_.end(), number)) continue;
    if (waiting_++ == 0) oldest_waiting_ = number;
  }
  counted_ = pairs_;
  return policy_.replaces(waiting_) || is_leaving(oldest_waiting_);
}

DictionaryUpkeep DictionaryRoll::upkeep() {
  const auto members = std::ssize(members_);
  if (members == policy_.budget() && choose()) return DictionaryUpkeep::kChoose;
  if (pairs_ > members && policy_.projects_again(projected_, members)) return DictionaryUpkeep::kProject;
  return DictionaryUpkeep::kNothing;
}

void DictionaryRoll::add_choice(std::span<const std::int64_t> block, const Admission& admission) {
  const std::int64_t first = first_of_window();
  std::size_t entered = 0;
  for (std::int64_t pair = 0; pair < std::ssize(block); ++pair) {
    if (entered < admission.entered.size() && admission.entered[entered] == pair) {
      next_.push_back(block[pair]);
      if (block[pair] >= first) priorities_[block[pair] - first] = DictionaryPolicy::priority(block[pair]);
      ++entered;
    } else if (block[pair] >= first) {
      priorities_[block[pair] - first] = -1.0;
    }
  }
}

void DictionaryRoll::end_choice() {
  members_ = std::move(next_);
  next_.clear();
  waiting_ = -1;
}

DictionaryRoll::Place DictionaryRoll::place_of(std::int64_t number) const {
  if (number >= first_of_window()) return {true, number - first_of_window()};
  return {false, std::lower_bound(members_.begin(), members_.end(), number) - members_.begin()};
}

std::vector<std::int64_t> DictionaryRoll::be_stricter() {
  policy_.be_stricter();
  std::vector<std::int64_t> candidates = members_;
  if (std::ssize(members_) == policy_.budget()) return candidates;
  const std::int64_t first = first_of_window();
  for (std::int64_t pair = 0; pair < std::ssize(priorities_); ++pair) {
    if (priorities_[pair] < 0.0) candidates.push_back(first + pair);
  }
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

std::int64_t DictionaryRoll::leaving() const {
  const auto kept = std::ssize(priorities_);
  return kept > policy_.window() + policy_.slack() ? kept - policy_.window() : 0;
}

void DictionaryRoll::trim(std::int64_t leaving) {
  priorities_.erase(priorities_.begin(), priorities_.begin() + leaving);
}

bool DictionaryRoll::restore(std::int64_t pairs, std::vector<std::int64_t> members,
                             std::vector<double> priorities, std::int64_t projected) {
  if (std::ssize(members) > policy_.budget() || std::ssize(priorities) > pairs ||
      std::ssize(members) > pairs || projected < 0 || projected > policy_.budget())
    return false;
  if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end() ||
      (!members.empty() && (members.front() < 0 || members.back() >= pairs)))
    return false;
  pairs_ = pairs;
  members_ = std::move(members);
  priorities_ = std::move(priorities);
  projected_ = projected;
  waiting_ = -1;
  return true;
}

}  // namespace olrank
