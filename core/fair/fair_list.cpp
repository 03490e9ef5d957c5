#include "core/fair/fair_list.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace olrank {

const TemplateTable& FairList::table_of(const ExposureRule& rule, int length) {
  if (!(rule == rule_)) {
    rule_ = rule;
    for (auto& table : tables_) table.reset();
  }
  auto& table = tables_[length];
  if (!table) table.emplace(rule, length);
  return *table;
}

bool FairList::find_candidates(const TemplateTable& table, const FairRound& fair) {
  candidates_.clear();
  double least = std::numeric_limits<double>::infinity();
  for (TemplatePattern pattern = 0; pattern < table.size(); ++pattern) {
    const double unfairness = std::abs(fair.unfairness[0] + table.gain(pattern));
    // Within ε all are candidates; until one is, only the closest.
    const bool is_fair = unfairness <= fair.rule->epsilon;
    if (!is_fair && unfairness > least) continue;
    if (!swap_.can_realise(pattern, table.length())) continue;
    const double rank = is_fair ? -1.0 : unfairness;
    if (rank < least) {
      candidates_.clear();
      least = rank;
    }
    candidates_.push_back(pattern);
  }
  assert(!candidates_.empty());
  return least < 0.0;
}

FairList::Choice FairList::choose_by_swaps(const TemplateTable& table, const FairRound& fair,
                                           std::uint32_t round) {
  std::optional<Choice> best;
  for (const TemplatePattern pattern : candidates_) {
    Choice candidate{.pattern = pattern, .length = table.length()};
    candidate.violated = swap_.swap(pattern, table.length());
    candidate.unfairness = fair.unfairness[0] + table.gain(pattern);
    if (!best || is_better(candidate, *best, key_, round)) best = candidate;
  }
  return *best;
}

FairList::Choice FairList::choose_exactly(const TemplateTable& table, const FairRound& fair,
                                          std::uint32_t round, Choice best,
                                          std::vector<std::int32_t>& list) {
  const Choice greedy = best;
  for (const TemplatePattern pattern : candidates_) {
    const auto violated = exact_.least_violated(pattern, table.length(), best.violated);
    if (exact_.gave_up()) break;
    if (!violated) continue;
    Choice candidate{.pattern = pattern, .length = table.length(), .violated = *violated};
    candidate.unfairness = fair.unfairness[0] + table.gain(pattern);
    if (pattern == best.pattern || is_better(candidate, best, key_, round)) best = candidate;
  }
  if (!exact_.gave_up() && exact_.draw_list(best.pattern, best.length, best.violated, list)) return best;
  best = greedy;
  best.search_gave_up = true;
  return best;
}

FairList::Choice FairList::make(const GroupedBlocks& blocks, const FairRound& fair, std::uint32_t round,
                                std::int64_t cutoff, std::vector<std::int32_t>& list) {
  assert(fair.groups.size() == blocks.by_score.size() && cutoff <= TemplateTable::kMostPlaces);
  list.clear();
  const auto length = static_cast<int>(std::min<std::int64_t>(cutoff, std::ssize(blocks.by_score)));
  if (length == 0) return {.unfairness = fair.rule->farthest(fair.unfairness)};
  if (fair.rule->groups() > 2) return many_.choose(blocks, fair, round, length, list);
  swap_.prepare(blocks, round);
  const TemplateTable& table = table_of(*fair.rule, length);
  const bool realisable = find_candidates(table, fair);
  Choice choice = choose_by_swaps(table, fair, round);
  bool written = false;
  if (search_ == TemplateSearch::kExact) {
    exact_.prepare(*blocks.orders, swap_, round);
    choice = choose_exactly(table, fair, round, choice, list);
    written = !choice.search_gave_up;
  }
  if (!written) {
    swap_.swap(choice.pattern, length);
    swap_.write_list(list);
  }
  choice.realisable = realisable;
  choice.templates = std::ssize(candidates_);
  return choice;
}

}  // namespace olrank
