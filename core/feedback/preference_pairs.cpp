#include "core/feedback/preference_pairs.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "core/io/fingerprint.h"

namespace olrank {
namespace {

std::int64_t lowest_bit(std::int64_t number) {
  return number & -number;
}

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
                 "how many unclicked documents behind the last click count as examined", {0})
          .symbol("l")
          .field("debias", &PairSettings::debias,
                 "probability that users examine each rank, from the first rank on; the last value holds "
                 "for all ranks below, too; a pair has the weight 1/probability of its winner's rank, at "
                 "most 10; if empty, every pair has the weight 1",
                 above(0.0, 1.0))
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
  return static_cast<std::int64_t>(fingerprint_of(name).low >> 1);
}

PairHistory::PairHistory(std::int64_t features, std::int64_t padding)
    : features_(features), stride_((features + padding - 1) / padding * padding) {}

std::size_t PairHistory::Hash::operator()(const Key& key) const {
  // Both numbers count documents, so they are small and dense: a multiplication spreads them well enough.
  const auto mixed = static_cast<std::uint64_t>(key.first) * 0x9E3779B97F4A7C15ULL +
                     static_cast<std::uint64_t>(key.second);
  return static_cast<std::size_t>(mixed ^ mixed >> 32);
}

PairHistory::Key PairHistory::key_of(std::int64_t row) const {
  return {docs_[2 * row], docs_[2 * row + 1]};
}

std::int64_t PairHistory::row_of(const QueryDocs& query, std::int32_t first, std::int32_t second) {
  const Key key{query.number(first), query.number(second)};
  const auto [known, is_new] = row_of_.try_emplace(key, row_count());
  if (!is_new) return known->second;
  rows_.resize(rows_.size() + static_cast<std::size_t>(stride_));
  docs_.resize(docs_.size() + 2);
  count_.push_back(0.0);
  first_wins_.push_back(0.0);
  earlier_.append(0);
  const std::int64_t number = known->second;
  double* row = rows_.data() + number * stride_;
  const auto x = query.features.doc(first);
  const auto y = query.features.doc(second);
  for (std::size_t k = 0; k < x.size(); ++k) row[k] = double{x[k]} - double{y[k]};
  docs_[2 * number] = key.first;
  docs_[2 * number + 1] = key.second;
  return number;
}

void PairHistory::add(const QueryDocs& query, std::span<const PreferencePair> pairs) {
  assert(query.features.features == features_);
  for (const Observation& pair : latest_) earlier_.add(pair.row, 1);
  latest_.clear();
  for (const auto& [winner, loser] : pairs) {
    assert(winner != loser);
    const bool in_order = query.number(winner) < query.number(loser);
    const std::int32_t first = in_order ? winner : loser;
    const std::int32_t second = in_order ? loser : winner;
    const Observation pair{row_of(query, first, second), winner == first};
    count_[pair.row] += 1.0;
    first_wins_[pair.row] += pair.first_wins ? 1.0 : 0.0;
    latest_.push_back(pair);
  }
  observed_ += std::ssize(pairs);
}

std::int64_t PairHistory::draw_earlier(PhiloxKey key, std::uint32_t round, std::uint32_t draw) const {
  RngStream coins(key, round, 0, draw);
  return earlier_.item_at(coins.index_of(earlier()));
}

void PairHistory::fields(StateFields& state) {
  state.number("history.features", features_, [&](std::int64_t saved) {
    state.require(saved == features_, "The saved history has another number of features.");
  });
  state.numbers("history.observed", observed_);
  state.any("history.docs", docs_);
  if (state.reads()) {
    count_.resize(docs_.size() / 2);
    first_wins_.resize(count_.size());
    rows_.resize(count_.size() * static_cast<std::size_t>(stride_));
  }
  state.sized("history.count", count_);
  state.sized("history.first_wins", first_wins_);
  state.growing("history.rows", rows_lineage_, rows_);
  if (!state.reads()) return;
  latest_.clear();
  row_of_.clear();
  earlier_.clear();
  for (std::int64_t row = 0; row < row_count(); ++row) {
    earlier_.append(static_cast<std::int64_t>(count_[row]));
    row_of_.emplace(key_of(row), row);
  }
}

void CountTree::append(std::int64_t count) {
  const std::int64_t end = items() + 1;
  std::int64_t sum = count;
  for (std::int64_t below = 1; below < lowest_bit(end); below *= 2) sum += sums_[end - below - 1];
  sums_.push_back(sum);
  total_ += count;
}

void CountTree::add(std::int64_t item, std::int64_t change) {
  for (std::int64_t end = item + 1; end <= items(); end += lowest_bit(end)) sums_[end - 1] += change;
  total_ += change;
}

std::int64_t CountTree::item_at(std::int64_t unit) const {
  assert(unit >= 0 && unit < total_);
  std::int64_t before = 0;
  for (auto span = static_cast<std::int64_t>(std::bit_floor(sums_.size())); span > 0; span /= 2) {
    if (before + span <= items() && sums_[before + span - 1] <= unit) {
      before += span;
      unit -= sums_[before - 1];
    }
  }
  return before;
}

void CountTree::clear() {
  sums_.clear();
  total_ = 0;
}

}  // namespace olrank
