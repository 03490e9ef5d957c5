#include "core/feedback/preference_pairs.h"

#include <algorithm>
#include <cassert>

namespace olrank {
namespace {

/// Disjoint neighbours (1, 2), (3, 4), … of which one was clicked.
void adjacent_pairs(std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                    std::vector<PreferencePair>& pairs) {
  for (std::size_t rank = 0; rank + 1 < shown.size(); rank += 2) {
    if (clicks[rank] == clicks[rank + 1]) continue;
    const bool first_wins = clicks[rank] != 0;
    pairs.push_back({shown[first_wins ? rank : rank + 1], shown[first_wins ? rank + 1 : rank]});
  }
}

void all_pairs(std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
               std::vector<PreferencePair>& pairs) {
  for (std::size_t winner = 0; winner < shown.size(); ++winner) {
    if (clicks[winner] == 0) continue;
    for (std::size_t loser = 0; loser < shown.size(); ++loser) {
      if (clicks[loser] == 0) pairs.push_back({shown[winner], shown[loser]});
    }
  }
}

/// Clicked and unclicked documents, each shuffled, then zipped.
void matched_pairs(std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                   RngStream coins, std::vector<PreferencePair>& pairs) {
  std::vector<std::int32_t> winners;
  std::vector<std::int32_t> losers;
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    (clicks[rank] != 0 ? winners : losers).push_back(shown[rank]);
  }
  coins.shuffle(std::span(winners));
  coins.shuffle(std::span(losers));
  for (std::size_t i = 0; i < std::min(winners.size(), losers.size()); ++i) {
    pairs.push_back({winners[i], losers[i]});
  }
}

}  // namespace

std::int64_t examined_documents(std::span<const std::uint8_t> clicks) {
  const auto shown = std::ssize(clicks);
  for (std::int64_t rank = shown; rank > 0; --rank) {
    if (clicks[rank - 1] != 0) return std::min(rank + 1, shown);
  }
  return 0;
}

void preference_pairs(PairRule rule, std::span<const std::int32_t> shown,
                      std::span<const std::uint8_t> clicks, RngStream coins,
                      std::vector<PreferencePair>& pairs) {
  assert(shown.size() == clicks.size());
  pairs.clear();
  const auto examined = static_cast<std::size_t>(examined_documents(clicks));
  const auto list = shown.first(examined);
  const auto on_list = clicks.first(examined);
  switch (rule) {
    case PairRule::kAdjacent:
      return adjacent_pairs(list, on_list, pairs);
    case PairRule::kMatched:
    case PairRule::kExpected:
      return matched_pairs(list, on_list, coins, pairs);
    case PairRule::kAll:
      return all_pairs(list, on_list, pairs);
  }
}

void loss_pairs(PairRule rule, std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                std::span<const PreferencePair> drawn, LossPairs& loss) {
  loss.weight = 1.0;
  if (rule != PairRule::kExpected) {
    loss.pairs.assign(drawn.begin(), drawn.end());
    return;
  }
  preference_pairs(PairRule::kAll, shown, clicks, RngStream({}, 0), loss.pairs);
  if (loss.pairs.empty()) return;
  // A matching has min(c, u) of the c · u pairs.
  loss.weight = static_cast<double>(drawn.size()) / static_cast<double>(loss.pairs.size());
}

}  // namespace olrank
