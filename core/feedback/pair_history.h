#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/io/state_archive.h"
#include "core/online/preference_pair.h"
#include "core/online/query_docs.h"

namespace olrank {

/// The history of preferences of a linear ranker. All pairs of the same two documents
/// share one row with counts, so memory and the cost of a pass stop growing once queries
/// repeat.
class PairHistory {
 public:
  /// Rows are padded with zeros to a multiple of `padding` features.
  PairHistory(std::int64_t features, std::int64_t padding);

  void add(const QueryDocs& query, std::span<const PreferencePair> pairs);

  std::int64_t observed() const { return observed_; }  // n, with repetitions
  std::int64_t distinct() const { return std::ssize(count_); }
  std::int64_t stride() const { return stride_; }

  /// x_first − x_second, [distinct × stride]; which of the two is first is arbitrary but fixed.
  std::span<const double> rows() const { return rows_; }
  std::span<const double> count() const { return count_; }            // observations
  std::span<const double> first_wins() const { return first_wins_; }  // of them won by the first

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  struct Key {
    std::int64_t first;
    std::int64_t second;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::int64_t features_;
  std::int64_t stride_;
  std::int64_t observed_ = 0;
  std::vector<double> rows_;
  std::vector<double> count_;
  std::vector<double> first_wins_;
  std::vector<std::int64_t> docs_;  // first and second of each row
  std::unordered_map<Key, std::int64_t, Hash> row_of_;
};

}  // namespace olrank
