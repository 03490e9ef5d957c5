#include "core/fair/fair_list.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "core/throw_error.h"

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

void check_group_count(const FairSettings& settings, std::size_t groups, std::string_view ranker) {
  if (groups == 2 || settings.fair != Fairness::kFairExp ||
      settings.template_search == TemplateSearch::kFairSwap)
    return;
  throw_error<InvalidArgument>(
      "Ranker '{}' has template_search = \"exact\", which is for two groups, but there are {}: use "
      "\"fairswap\".",
      ranker, groups);
}

const Schema& FairSettings::schema() {
  using S = FairSettings;
  static const Schema schema =
      SchemaBuilder<S>("fair", "How a ranker keeps the exposure of groups in balance.")
          .field("fair", &S::fair,
                 "`fairexp` chooses, among all lists of groups that keep the unfairness within ε, the one "
                 "that violates the fewest certain orders; `fairco` adds to the scores of a group with too "
                 "little exposure; both need [groups]")
          .field("template_search", &S::template_search,
                 "how FairExp finds the list of a template: the paper's greedy `fairswap`, or `exact`, "
                 "which violates as few certain orders as any list and is for two groups only")
          .field("fair_gain", &S::fair_gain, "increase of a score for each unit of unfairness in FairCo",
                 {0.0})
          .symbol("λ_c")
          .build();
  return schema;
}

namespace {

bool has(std::span<const std::uint64_t> bits, std::int32_t place) {
  return (bits[place / OrderBits::kWordBits] >> place % OrderBits::kWordBits & 1U) != 0;
}

bool is_subset(std::span<const std::uint64_t> some, std::span<const std::uint64_t> all) {
  for (std::size_t word = 0; word < some.size(); ++word) {
    if ((some[word] & ~all[word]) != 0) return false;
  }
  return true;
}

std::size_t group_of_place(TemplatePattern pattern, int place) {
  return (pattern >> place & 1U) != 0 ? 0 : 1;
}

}  // namespace

void ExactSearch::prepare(const OrderBits& orders, const FairSwap& swap, std::uint32_t round) {
  round_ = round;
  before_ = &swap.before();
  const auto docs = static_cast<std::int32_t>(orders.docs());
  before_count_.assign(docs, 0);
  for (std::int32_t place = 0; place < docs; ++place) {
    for (const std::uint64_t word : before_->row(place)) before_count_[place] += std::popcount(word);
  }
  for (auto& places : all_) places.clear();
  for (std::int32_t place = 0; place < docs; ++place)
    all_[static_cast<std::size_t>(swap.group_of(place))].push_back(place);
  dominators_.reset(docs);
  dominator_count_.assign(docs, 0);
  for (auto& places : all_) {
    std::sort(places.begin(), places.end(),
              [&](std::int32_t a, std::int32_t b) { return swap.coin_rank(a) < swap.coin_rank(b); });
    for (const std::int32_t x : places) {
      for (const std::int32_t y : places) {
        if (x == y || before_count_[x] > before_count_[y]) continue;
        if (!is_subset(before_->row(x), before_->row(y)) || !is_subset(orders.row(y), orders.row(x)))
          continue;
        const bool equal = before_count_[x] == before_count_[y] && is_subset(orders.row(x), orders.row(y));
        if (equal && swap.coin_rank(x) > swap.coin_rank(y)) continue;
        dominators_.row(y)[x / OrderBits::kWordBits] |= std::uint64_t{1} << x % OrderBits::kWordBits;
        ++dominator_count_[y];
      }
    }
  }
  for (std::size_t group = 0; group < 2; ++group) {
    firsts_[group].clear();
    for (const std::int32_t place : all_[group]) {
      if (dominator_count_[place] < TemplateTable::kMostPlaces) firsts_[group].push_back(place);
    }
    std::sort(firsts_[group].begin(), firsts_[group].end(), [&](std::int32_t a, std::int32_t b) {
      return dominator_count_[a] < dominator_count_[b] ||
             (dominator_count_[a] == dominator_count_[b] && a < b);
    });
  }
  steps_ = 0;
}

std::int64_t ExactSearch::cost_of(const State& state, std::int32_t place) const {
  std::int64_t cost = before_count_[place];
  const auto row = before_->row(place);
  for (int i = 0; i < state.size; ++i) cost -= has(row, state.taken[i]) ? 1 : 0;
  return cost;
}

bool ExactSearch::may_take(const State& state, std::int32_t place) const {
  if (dominator_count_[place] > state.size) return false;
  int open = dominator_count_[place];
  const auto row = dominators_.row(place);
  for (int i = 0; i < state.size; ++i) {
    if (state.taken[i] == place) return false;
    open -= has(row, state.taken[i]) ? 1 : 0;
  }
  return open == 0;
}

ExactSearch::State ExactSearch::with(const State& state, std::int32_t place, std::int64_t cost) {
  State next = state;
  int at = next.size++;
  for (; at > 0 && next.taken[at - 1] > place; --at) next.taken[at] = next.taken[at - 1];
  next.taken[at] = place;
  next.cost += cost;
  return next;
}

std::optional<std::int64_t> ExactSearch::finish(const State& from, TemplatePattern pattern, int length,
                                                std::int64_t bound) {
  if (from.cost > bound) return std::nullopt;
  states_.assign(1, from);
  for (int place = from.size; place < length; ++place) {
    next_.clear();
    for (const State& state : states_) {
      for (const std::int32_t doc : firsts_[group_of_place(pattern, place)]) {
        if (dominator_count_[doc] > state.size) break;  // and so are all that follow
        ++steps_;
        if (!may_take(state, doc)) continue;
        const std::int64_t cost = cost_of(state, doc);
        if (state.cost + cost <= bound) next_.push_back(with(state, doc, cost));
      }
      if (gave_up()) return std::nullopt;
    }
    // The cheapest of equal sets stays.
    std::sort(next_.begin(), next_.end(), [](const State& a, const State& b) {
      return std::tie(a.taken, a.cost) < std::tie(b.taken, b.cost);
    });
    next_.erase(std::unique(next_.begin(), next_.end(),
                            [](const State& a, const State& b) { return a.taken == b.taken; }),
                next_.end());
    std::swap(states_, next_);
    if (states_.empty()) return std::nullopt;
  }
  return std::ranges::min(states_, {}, &State::cost).cost;
}

std::optional<std::int64_t> ExactSearch::least_violated(TemplatePattern pattern, int length,
                                                        std::int64_t bound) {
  return finish(State{}, pattern, length, bound);
}

bool ExactSearch::draw_list(TemplatePattern pattern, int length, std::int64_t violated,
                            std::vector<std::int32_t>& list) {
  State state;
  list.clear();
  for (int place = 0; place < length; ++place) {
    // Each place has an order of its own: a fixed one would always prefer the same documents.
    std::vector<std::int32_t>& choices = all_[group_of_place(pattern, place)];
    RngStream(key_, round_, 1, static_cast<std::uint32_t>(place)).shuffle(std::span(choices));
    bool found = false;
    for (const std::int32_t doc : choices) {
      const auto taken = std::span(state.taken.data(), static_cast<std::size_t>(state.size));
      if (std::find(taken.begin(), taken.end(), doc) != taken.end()) continue;
      const std::int64_t cost = cost_of(state, doc);
      if (state.cost + cost > violated) continue;
      const State tried = with(state, doc, cost);
      found = finish(tried, pattern, length, violated).has_value();
      if (gave_up()) return false;
      if (!found) continue;
      list.push_back(doc);
      state = tried;
      break;
    }
    if (!found) return false;
  }
  const auto taken = std::span(state.taken.data(), static_cast<std::size_t>(state.size));
  for (std::int32_t place = 0; place < std::ssize(before_count_); ++place) {
    if (std::find(taken.begin(), taken.end(), place) == taken.end()) list.push_back(place);
  }
  return true;
}

}  // namespace olrank
