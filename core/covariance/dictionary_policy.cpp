#include "core/covariance/dictionary_policy.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "core/random/rng_stream.h"

namespace olrank {

std::int64_t DictionaryPolicy::slack() const {
  return std::max(kRows, budget_ / 4);
}

bool DictionaryPolicy::restore_least_share(double share) {
  if (!(share >= kLeastShare && share <= kMostShare)) return false;
  least_share_ = share;
  return true;
}

double DictionaryPolicy::priority(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return RngStream(make_key({.purpose = Purpose::kDictionary}), static_cast<std::uint32_t>(bits),
                   static_cast<std::uint32_t>(bits >> 32))
      .uniform();
}

// Cholesky's elimination, with the pairs that enter as its pivots.
Admission DictionaryPolicy::admit(std::int64_t members, std::span<const double> magnitudes,
                                  std::span<double> residual) const {
  const auto pairs = std::ssize(magnitudes);
  Admission admission;
  std::vector<double> columns;  // [entered × pairs]
  for (std::int64_t i = 0; i < pairs && members + std::ssize(admission.entered) < budget_; ++i) {
    const double left = residual[i * pairs + i];
    if (!is_new(left, magnitudes[i])) continue;
    const double pivot = std::sqrt(left);
    const auto first = std::ssize(columns);
    for (std::int64_t j = 0; j < pairs; ++j) columns.push_back(residual[i * pairs + j] / pivot);
    // Pairs that entered earlier have nothing left.
    for (const std::int64_t earlier : admission.entered) columns[first + earlier] = 0.0;
    columns[first + i] = pivot;
    const double* along = columns.data() + first;
    for (std::int64_t j = 0; j < pairs; ++j) {
      for (std::int64_t k = 0; k < pairs; ++k) residual[j * pairs + k] -= along[j] * along[k];
    }
    for (std::int64_t j = 0; j < pairs; ++j) residual[i * pairs + j] = residual[j * pairs + i] = 0.0;
    admission.entered.push_back(i);
  }
  const auto entered = std::ssize(admission.entered);
  admission.coordinates.resize(columns.size());
  for (std::int64_t i = 0; i < pairs; ++i) {
    for (std::int64_t e = 0; e < entered; ++e)
      admission.coordinates[i * entered + e] = columns[e * pairs + i];
  }
  return admission;
}

std::vector<std::int64_t> DictionaryPolicy::choose(std::span<const double> priorities) const {
  std::vector<std::int64_t> chosen(priorities.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  if (std::ssize(chosen) <= budget_) return chosen;
  // The older pair counts where priorities are equal.
  std::nth_element(chosen.begin(), chosen.begin() + budget_, chosen.end(),
                   [&](std::int64_t a, std::int64_t b) {
                     return priorities[a] != priorities[b] ? priorities[a] > priorities[b] : a < b;
                   });
  chosen.resize(budget_);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

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
