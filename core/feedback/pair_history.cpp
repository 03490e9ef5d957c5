#include "core/feedback/pair_history.h"

#include <bit>
#include <cassert>

namespace olrank {

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

namespace {

std::int64_t lowest_bit(std::int64_t number) {
  return number & -number;
}

}  // namespace

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
