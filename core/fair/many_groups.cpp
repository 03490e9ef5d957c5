#include "core/fair/many_groups.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace olrank {
namespace {

/// Sums of exposure are rounded; a beginning is not left out for that.
constexpr double kRounding = 1e-9;

std::uint64_t key_of(const std::array<std::uint8_t, kMostGroups>& counts) {
  std::uint64_t key = 0;
  for (const std::uint8_t count : counts) key = key << 8 | count;
  return key;
}

}  // namespace

/// A document that is placed passes those of other groups that come before it in the ranker's list and are
/// not placed yet: what is certainly before it is violated then, and what it is certainly before no longer.
void ManyGroups::prepare(const GroupedBlocks& blocks) {
  const std::size_t groups = fair_->rule->groups();
  for (auto& docs : docs_) docs.clear();
  std::array<std::int32_t, kMostGroups> seen{};  // documents of the groups so far
  for (std::size_t rank = 0; rank < blocks.list.size(); ++rank) {
    const std::int32_t place = blocks.list[rank];
    const std::size_t group = index_of(blocks.groups[blocks.by_score[place]]);
    const std::int32_t number = seen[group]++;
    if (number >= length_) continue;
    docs_[group].push_back(place);
    auto& costs = costs_[group][number];
    for (auto& of_other : costs) of_other.fill(0);
    std::array<std::int32_t, kMostGroups> passed{};
    for (std::size_t before = 0; before < rank; ++before) {
      const std::int32_t other_place = blocks.list[before];
      const std::size_t other = index_of(blocks.groups[blocks.by_score[other_place]]);
      const std::int32_t count = std::min(passed[other]++, length_);
      costs[other][count] += (blocks.orders->certain(other_place, place) ? 1 : 0) -
                             (blocks.orders->certain(place, other_place) ? 1 : 0);
    }
    for (std::size_t other = 0; other < groups; ++other) {
      for (int count = length_; count > 0; --count) costs[other][count - 1] += costs[other][count];
    }
  }
  base_violated_ = count_violated(*blocks.orders, blocks.list, placed_);
  rest_[length_] = 0.0;
  for (int rank = length_; rank > 0; --rank)
    rest_[rank - 1] = rest_[rank] + fair_->rule->exposure_at(rank - 1);
  least_.clear();
}

std::int64_t ManyGroups::cost_of(const Beginning& beginning, std::size_t group) const {
  const auto& costs = costs_[group][beginning.counts[group]];
  std::int64_t cost = 0;
  for (std::size_t other = 0; other < fair_->rule->groups(); ++other) {
    if (other != group) cost += costs[other][beginning.counts[other]];
  }
  return cost;
}

ManyGroups::Beginning ManyGroups::with(const Beginning& beginning, std::size_t group) const {
  const ExposureRule& rule = *fair_->rule;
  Beginning next = beginning;
  next.violated += cost_of(beginning, group);
  TemplatePattern digit = static_cast<TemplatePattern>(rule.groups() - 1 - group);
  for (int place = 0; place < next.places; ++place) digit *= static_cast<TemplatePattern>(rule.groups());
  next.pattern += digit;
  rule.add(static_cast<DocGroup>(group), rule.exposure_at(next.places), next.gain);
  ++next.counts[group];
  ++next.places;
  return next;
}

std::int64_t ManyGroups::least_after(const Beginning& beginning) {
  if (beginning.places == length_) return 0;
  const std::uint64_t key = key_of(beginning.counts);
  if (const auto found = least_.find(key); found != least_.end()) return found->second;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t group = 0; group < fair_->rule->groups(); ++group) {
    if (!has_next(beginning, group)) continue;
    Beginning next;
    next.counts = beginning.counts;
    next.places = beginning.places + 1;
    ++next.counts[group];
    least = std::min(least, cost_of(beginning, group) + least_after(next));
  }
  least_.emplace(key, least);
  return least;
}

PairFigures ManyGroups::unfairness_after(const Beginning& beginning) const {
  PairFigures unfairness = fair_->unfairness;
  for (std::size_t pair = 0; pair < fair_->rule->pairs(); ++pair) unfairness[pair] += beginning.gain[pair];
  return unfairness;
}

/// Exposure only grows, so each group needs at least what brings it to within the limit of those ahead.
bool ManyGroups::can_stay_within(const Beginning& beginning, double limit) const {
  const ExposureRule& rule = *fair_->rule;
  const PairFigures unfairness = unfairness_after(beginning);
  std::array<double, kMostGroups> needs{};
  for (std::size_t second = 1; second < rule.groups(); ++second) {
    for (std::size_t first = 0; first < second; ++first) {
      const double lead = unfairness[pair_of(first, second)];
      needs[first] = std::max(needs[first], -lead - limit);
      needs[second] = std::max(needs[second], (lead - limit) / rule.beta_of(first, second));
    }
  }
  double sum = 0.0;
  for (std::size_t group = 0; group < rule.groups(); ++group) {
    if (needs[group] > kRounding && !has_next(beginning, group)) return false;
    sum += needs[group];
  }
  return sum <= rest_[beginning.places] + kRounding;
}

bool ManyGroups::can_be_better(const Beginning& beginning) {
  if (!best_) return true;
  if (!best_->realisable) return can_stay_within(beginning, std::abs(best_->unfairness));
  const std::int64_t violated = base_violated_ + beginning.violated + least_after(beginning);
  if (violated > best_->violated) return false;
  return can_stay_within(beginning,
                         violated < best_->violated ? fair_->rule->epsilon : std::abs(best_->unfairness));
}

void ManyGroups::compare(const Beginning& whole) {
  ++templates_;
  FairChoice choice{.pattern = whole.pattern, .length = length_};
  choice.violated = base_violated_ + whole.violated;
  choice.unfairness = fair_->rule->farthest(unfairness_after(whole));
  const double size = std::abs(choice.unfairness);
  choice.realisable = size <= fair_->rule->epsilon;
  if (best_ && choice.realisable != best_->realisable) {
    if (choice.realisable) best_ = choice;
    return;
  }
  if (best_ && !choice.realisable && size != std::abs(best_->unfairness)) {
    if (size < std::abs(best_->unfairness)) best_ = choice;
    return;
  }
  if (!best_ || is_better(choice, *best_, key_, round_)) best_ = choice;
}

void ManyGroups::search(const Beginning& beginning) {
  if (beginning.places == length_) return compare(beginning);
  struct Next {
    Beginning beginning;
    std::int64_t violated;
    double farthest;

    bool comes_before(const Next& other) const {
      return violated < other.violated || (violated == other.violated && farthest < other.farthest);
    }
  };
  std::array<Next, kMostGroups> all;
  std::size_t count = 0;
  for (std::size_t group = 0; group < fair_->rule->groups(); ++group) {
    if (!has_next(beginning, group)) continue;
    Next next;
    next.beginning = with(beginning, group);
    next.violated = next.beginning.violated + least_after(next.beginning);
    next.farthest = std::abs(fair_->rule->farthest(unfairness_after(next.beginning)));
    std::size_t at = count++;
    for (; at > 0 && next.comes_before(all[at - 1]); --at) all[at] = all[at - 1];
    all[at] = next;
  }
  for (std::size_t next = 0; next < count && steps_ <= kMostSteps; ++next) {
    ++steps_;
    if (can_be_better(all[next].beginning)) search(all[next].beginning);
  }
}

void ManyGroups::write_list(const GroupedBlocks& blocks, std::vector<std::int32_t>& list) const {
  const auto groups = static_cast<TemplatePattern>(fair_->rule->groups());
  std::array<std::size_t, kMostGroups> next{};
  list.clear();
  TemplatePattern left = best_->pattern;
  for (int place = 0; place < length_; ++place, left /= groups) {
    const std::size_t group = groups - 1 - left % groups;
    list.push_back(docs_[group][next[group]++]);
  }
  std::array<std::size_t, kMostGroups> seen{};
  for (const std::int32_t place : blocks.list) {
    const std::size_t group = index_of(blocks.groups[blocks.by_score[place]]);
    if (seen[group]++ >= next[group]) list.push_back(place);
  }
}

FairChoice ManyGroups::choose(const GroupedBlocks& blocks, const FairRound& fair, std::uint32_t round,
                              int length, std::vector<std::int32_t>& list) {
  assert(length > 0 && length <= TemplateTable::kMostPlaces && length <= std::ssize(blocks.list));
  fair_ = &fair;
  round_ = round;
  length_ = length;
  prepare(blocks);
  best_.reset();
  steps_ = templates_ = 0;
  // A list that is as fair as it gets place by place: the search leaves out more the better the first is.
  Beginning first;
  while (first.places < length) {
    std::optional<Beginning> fairest;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t group = 0; group < fair.rule->groups(); ++group) {
      if (!has_next(first, group)) continue;
      const Beginning next = with(first, group);
      const double farthest = std::abs(fair.rule->farthest(unfairness_after(next)));
      if (fairest && !(farthest < least)) continue;
      least = farthest;
      fairest = next;
    }
    first = *fairest;
  }
  compare(first);
  search({});
  best_->templates = templates_;
  best_->search_gave_up = steps_ > kMostSteps;
  write_list(blocks, list);
  return *best_;
}

}  // namespace olrank
