#include "models/skeleton/certain_list.h"

#include <algorithm>
#include <utility>

namespace olrank {

CertainList::CertainList(const ExplorationSettings& settings, const FairSettings& fair,
                         const TrialKeys& keys, std::int64_t cutoff)
    : cutoff_(cutoff), list_(settings.list, settings.refine, keys.key(Purpose::kList)) {
  if (fair.fair == Fairness::kFairExp)
    fair_list_.emplace(fair.template_search, keys.key(Purpose::kTemplate));
  if (follows_posterior(settings.list))
    posterior_order_.emplace(settings.list, keys.key(Purpose::kScores), keys.key(Purpose::kList));
}

CertainList CertainList::of(const RankingTask& task, ExplorationSettings settings, const FairSettings& fair,
                            const TrialKeys& keys) {
  if (!task.explore) settings.list = ListRule::kGreedy;
  return {settings, fair, keys, task.cutoff};
}

void CertainList::hand_over(const RankedList& made, Ranking& ranking) {
  ranking.list.assign(made.docs.begin(), made.docs.end());
  ranking.knows_orders = true;
  ranking.certainty = made.certainty;
  ranking.fairness = made.fairness;
  ranking.propensity.assign(made.propensity.begin(), made.propensity.end());
  std::swap(ranking.orders, orders_);
}

RankedList CertainList::make(std::span<const std::int32_t> by_score, std::uint32_t round,
                             const FairRound* fair) {
  list_.arrange(by_score, orders_, round);
  return finish(by_score, list_.shuffles_blocks(), round, fair);
}

RankedList CertainList::make_explored(std::span<const std::int32_t> by_score, const ScoreBelief& belief,
                                      std::uint32_t round, const FairRound* fair) {
  if (!posterior_order_) return make(by_score, round, fair);
  const auto list = posterior_order_->find(belief, round);
  return make_of_list(by_score, list, posterior_order_->propensity(), round, fair);
}

RankedList CertainList::make_of_blocks(std::span<const std::int32_t> by_score,
                                       std::span<const std::int32_t> block_ends, std::uint32_t round,
                                       const FairRound* fair) {
  list_.arrange_blocks(by_score, block_ends, round);
  return finish(by_score, true, round, fair);
}

RankedList CertainList::make_of_list(std::span<const std::int32_t> by_score,
                                     std::span<const std::int32_t> list, std::span<const double> propensity,
                                     std::uint32_t round, const FairRound* fair) {
  if (fair_list_ && fair != nullptr) return make(by_score, round, fair);
  list_.arrange_as(by_score, orders_, list, propensity);
  return finish(by_score, false, round, fair);
}

RankedList CertainList::finish(std::span<const std::int32_t> by_score, bool uniform, std::uint32_t round,
                               const FairRound* fair) {
  if (fair == nullptr) return list_.finish(by_score, orders_, cutoff_);
  ListFairness fairness;
  if (fair_list_) {
    const GroupedBlocks blocks{by_score,     list_.block_ends(), &list_.followed(orders_),
                               fair->groups, list_.places(),     uniform};
    fairness.realisable = fair_list_->make(blocks, *fair, round, cutoff_, fair_places_).realisable;
    std::swap(list_.places(), fair_places_);
    list_.forget_propensity();  // of chance and exposure together
  }
  fairness.violated = count_violated(orders_, list_.places(), placed_);
  RankedList list = list_.finish(by_score, orders_, cutoff_);
  list.fairness = fairness;
  return list;
}

RankedList CertainList::make_controlled(std::span<const std::int32_t> by_score,
                                        std::span<const std::int32_t> controlled_by_score,
                                        const OrderBits& controlled_orders, std::uint32_t round) {
  RankedList list = list_.make(controlled_by_score, controlled_orders, round, cutoff_);
  list.propensity = {};
  return with_violated(list, by_score);
}

RankedList CertainList::make_controlled_blocks(std::span<const std::int32_t> by_score,
                                               std::span<const std::int32_t> controlled_by_score,
                                               std::span<const std::int32_t> controlled_ends,
                                               std::uint32_t round) {
  list_.arrange_blocks(controlled_by_score, controlled_ends, round);
  // What is certain between the shown documents is counted in the orders by block.
  place_of_.resize(by_score.size());
  for (std::size_t place = 0; place < by_score.size(); ++place)
    place_of_[by_score[place]] = static_cast<std::int32_t>(place);
  for (std::int32_t& place : list_.places()) place = place_of_[controlled_by_score[place]];
  list_.forget_propensity();
  return with_violated(list_.finish(by_score, orders_, cutoff_), by_score);
}

RankedList CertainList::with_violated(RankedList list, std::span<const std::int32_t> by_score) {
  place_of_.resize(by_score.size());
  for (std::size_t place = 0; place < by_score.size(); ++place)
    place_of_[by_score[place]] = static_cast<std::int32_t>(place);
  fair_places_.clear();
  for (const std::int32_t doc : list.docs) fair_places_.push_back(place_of_[doc]);
  list.fairness = ListFairness{.violated = count_violated(orders_, fair_places_, placed_)};
  return list;
}

std::span<const std::int32_t> CertainList::shown(const RankedList& list) const {
  return list.docs.first(std::min(static_cast<std::size_t>(cutoff_), list.docs.size()));
}

void CertainList::write_matrix(std::span<const std::int32_t> by_score,
                               std::vector<std::uint8_t>& matrix) const {
  const std::size_t docs = by_score.size();
  matrix.assign(docs * docs, 0);
  for (std::size_t place = 0; place < docs; ++place) {
    const auto row = std::span(matrix).subspan(static_cast<std::size_t>(by_score[place]) * docs, docs);
    orders_.for_each_below(static_cast<std::int64_t>(place),
                           [&](std::int64_t below) { row[by_score[below]] = 1; });
  }
}

}  // namespace olrank
