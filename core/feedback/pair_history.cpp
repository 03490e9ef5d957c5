#include "core/feedback/pair_history.h"

#include <algorithm>
#include <cassert>

namespace olrank {

PairHistory::PairHistory(std::int64_t features, std::int64_t padding, std::int64_t limit)
    : features_(features), stride_((features + padding - 1) / padding * padding), limit_(limit) {}

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
  ++entered_;
  if (free_rows_.empty()) {
    rows_.resize(rows_.size() + static_cast<std::size_t>(stride_));
    docs_.resize(docs_.size() + 2);
    count_.push_back(0.0);
    first_wins_.push_back(0.0);
    earlier_.append(0);
  } else {
    known->second = free_rows_.back();
    free_rows_.pop_back();
  }
  const std::int64_t number = known->second;
  double* row = rows_.data() + number * stride_;
  const auto x = query.features.doc(first);
  const auto y = query.features.doc(second);
  for (std::size_t k = 0; k < x.size(); ++k) row[k] = double{x[k]} - double{y[k]};
  docs_[2 * number] = key.first;
  docs_[2 * number + 1] = key.second;
  return number;
}

void PairHistory::change(const Observation& pair, double by) {
  count_[pair.row] += by;
  first_wins_[pair.row] += pair.first_wins ? by : 0.0;
  observed_ += static_cast<std::int64_t>(by);
}

void PairHistory::add(const QueryDocs& query, std::span<const PreferencePair> pairs) {
  assert(query.features.features == features_);
  for (const Observation& pair : latest_) earlier_.add(pair.row, 1);
  latest_.clear();
  forgotten_.clear();
  for (const auto& [winner, loser] : pairs) {
    assert(winner != loser);
    const bool in_order = query.number(winner) < query.number(loser);
    const std::int32_t first = in_order ? winner : loser;
    const std::int32_t second = in_order ? loser : winner;
    const Observation pair{row_of(query, first, second), winner == first};
    change(pair, 1.0);
    latest_.push_back(pair);
    if (limit_ > 0) kept_.push_back(pair);
  }
  ever_ += std::ssize(pairs);
  while (limit_ > 0 && observed_ > limit_) forget_oldest();
}

void PairHistory::forget_oldest() {
  const Observation oldest = kept_.front();
  if (kept_.size() == latest_.size()) {
    latest_.erase(latest_.begin());  // this round alone brought more than the limit
  } else {
    earlier_.add(oldest.row, -1);
    forgotten_.push_back(oldest);
  }
  kept_.pop_front();
  change(oldest, -1.0);
  if (count_[oldest.row] > 0.0) return;
  row_of_.erase(key_of(oldest.row));
  free_rows_.push_back(oldest.row);
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
    entered_ = row_count();
    ever_ = observed_;
  }
  state.sized("history.count", count_);
  state.sized("history.first_wins", first_wins_);
  if (limit_ == 0) {
    state.growing("history.rows", rows_lineage_, rows_);
  } else {
    state.sized("history.rows", rows_);
    std::vector<std::int64_t> kept;
    for (const Observation& pair : kept_) kept.push_back(2 * pair.row + (pair.first_wins ? 1 : 0));
    state.any("history.kept", kept);
    state.any("history.free_rows", free_rows_);
    state.numbers("history.entered", entered_);
    state.numbers("history.ever", ever_);
    if (state.reads()) {
      rows_lineage_.renew();
      kept_.clear();
      for (const std::int64_t packed : kept) kept_.push_back({packed / 2, packed % 2 != 0});
    }
  }
  if (!state.reads()) return;
  latest_.clear();
  forgotten_.clear();
  row_of_.clear();
  earlier_.clear();
  for (std::int64_t row = 0; row < row_count(); ++row) {
    earlier_.append(static_cast<std::int64_t>(count_[row]));
    if (count_[row] > 0.0) row_of_.emplace(key_of(row), row);
  }
}

}  // namespace olrank
