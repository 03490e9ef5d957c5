#include "core/feedback/preference_pairs.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/io/fingerprint.h"

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

std::int64_t examined_documents(std::span<const std::uint8_t> clicks, std::int64_t after) {
  const auto shown = std::ssize(clicks);
  for (std::int64_t rank = shown; rank > 0; --rank) {
    if (clicks[rank - 1] != 0) return rank + std::min(after, shown - rank);
  }
  return 0;
}

void preference_pairs(const PairSettings& settings, std::span<const std::int32_t> shown,
                      std::span<const std::uint8_t> clicks, RngStream coins,
                      std::vector<PreferencePair>& pairs) {
  assert(shown.size() == clicks.size());
  pairs.clear();
  const auto examined = static_cast<std::size_t>(examined_documents(clicks, settings.examined_after));
  const auto list = shown.first(examined);
  const auto on_list = clicks.first(examined);
  switch (settings.pairs) {
    case PairRule::kAdjacent:
      return adjacent_pairs(list, on_list, pairs);
    case PairRule::kMatched:
    case PairRule::kExpected:
      return matched_pairs(list, on_list, coins, pairs);
    case PairRule::kAll:
      return all_pairs(list, on_list, pairs);
  }
}

double click_weight(const Feedback& feedback, std::span<const double> debias, std::size_t rank) {
  double weight = feedback.rewards.empty() ? 1.0 : feedback.rewards[rank];
  if (!debias.empty()) weight /= std::max(debias[std::min(rank, debias.size() - 1)], 1.0 / kMostDebiased);
  return std::min(weight, kMostCopies);
}

void repeat_pairs(const Feedback& feedback, std::span<const double> debias, PhiloxKey key,
                  std::vector<PreferencePair>& pairs) {
  assert(feedback.rewards.empty() || feedback.rewards.size() == feedback.shown.size());
  if (feedback.rewards.empty() && debias.empty()) return;
  // Matchings take position 0 of the key's draws, epochs of mini-batches position 1.
  constexpr std::uint32_t kPosition = 2;
  std::vector<PreferencePair> repeated;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    const auto place = std::find(feedback.shown.begin(), feedback.shown.end(), pairs[pair].winner);
    const double weight =
        click_weight(feedback, debias, static_cast<std::size_t>(place - feedback.shown.begin()));
    const double whole = std::floor(weight);
    auto copies = static_cast<std::size_t>(whole);
    if (weight > whole) {
      RngStream coins(key, feedback.round, static_cast<std::uint32_t>(pair), kPosition);
      copies += coins.uniform() < weight - whole ? 1 : 0;
    }
    repeated.insert(repeated.end(), copies, pairs[pair]);
  }
  pairs = std::move(repeated);
}

void loss_pairs(const PairSettings& settings, const Feedback& feedback, PhiloxKey key,
                std::span<const PreferencePair> drawn, LossPairs& loss) {
  loss.weight = 1.0;
  if (settings.pairs != PairRule::kExpected) {
    loss.pairs.assign(drawn.begin(), drawn.end());
  } else {
    const PairSettings all{
        .pairs = PairRule::kAll, .debias = {}, .examined_after = settings.examined_after};
    preference_pairs(all, feedback.shown, feedback.clicks, RngStream({}, 0), loss.pairs);
    if (loss.pairs.empty()) return;
    // A matching has min(c, u) of the c · u pairs.
    loss.weight = static_cast<double>(drawn.size()) / static_cast<double>(loss.pairs.size());
  }
  repeat_pairs(feedback, settings.debias, key, loss.pairs);
}

const Schema& PairSettings::schema() {
  static const Schema schema =
      SchemaBuilder<PairSettings>(
          "ranker", "Which examined documents form preference pairs, and how much each counts.")
          .field("pairs", &PairSettings::pairs,
                 "which clicked and unclicked documents form pairs; `expected` (olranknet, p2neurrank) "
                 "uses a random matching for the covariance and, for the loss, all pairs weighted by their "
                 "probability of being matched")
          .field("examined_after", &PairSettings::examined_after,
                 "how many unclicked documents behind the last click count as examined")
          .symbol("l")
          .at_least(0)
          .field(
              "debias", &PairSettings::debias,
              "probability that users examine each rank, from the first rank on; the last value holds "
              "for all ranks below, too; a pair has the weight 1/probability of its winner's rank, at "
              "most 10; if empty, every pair has the weight 1; intervention-aware learns the probabilities "
              "instead")
          .above(0.0)
          .at_most(1.0)
          .build();
  return schema;
}

std::int64_t doc_number(std::string_view query, std::span<const float> inputs, std::string_view name) {
  Fingerprinter fingerprinter;
  const auto size = static_cast<std::uint64_t>(query.size());
  fingerprinter.add(&size, sizeof size);
  fingerprinter.add(query);
  fingerprinter.add(inputs);
  fingerprinter.add(name);
  return static_cast<std::int64_t>(fingerprinter.value().low >> 1);
}

std::int64_t name_number(std::string_view name) {
  Fingerprinter fingerprinter;
  fingerprinter.add(name);
  return static_cast<std::int64_t>(fingerprinter.value().low >> 1);
}

}  // namespace olrank
