#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/io/state_fields.h"
#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Counts of items, of which one can be drawn with a probability proportional to its count: a binary
/// indexed tree (Fenwick, "A new data structure for cumulative frequency tables", 1994). Every call is
/// O(log items).
class CountTree {
 public:
  std::int64_t items() const { return std::ssize(sums_); }
  std::int64_t total() const { return total_; }

  void append(std::int64_t count);
  /// `change` may be negative, an item's count not.
  void add(std::int64_t item, std::int64_t change);
  /// The item that the unit of this number belongs to, items side by side; 0 ≤ unit < total().
  std::int64_t item_at(std::int64_t unit) const;
  void clear();

 private:
  std::vector<std::int64_t> sums_;  // [i − 1]: of items i − lowest_bit(i) … i − 1
  std::int64_t total_ = 0;
};

/// The history of preferences of a linear ranker. All pairs of the same two documents
/// share one row with counts, so memory and the cost of a pass stop growing once queries
/// repeat.
class PairHistory : public Stateful {
 public:
  /// Rows are padded with zeros to a multiple of `padding` features.
  PairHistory(std::int64_t features, std::int64_t padding);

  void add(const QueryDocs& query, std::span<const PreferencePair> pairs);

  std::int64_t observed() const { return observed_; }  // n: pairs, with repetitions
  std::int64_t row_count() const { return std::ssize(count_); }
  std::int64_t stride() const { return stride_; }

  /// x_first − x_second, [row_count × stride]; which of the two is first is arbitrary but fixed.
  std::span<const double> rows() const { return rows_; }
  const double* row(std::int64_t number) const { return rows_.data() + number * stride_; }
  std::span<const double> count() const { return count_; }            // observations
  std::span<const double> first_wins() const { return first_wins_; }  // of them won by the first

  struct Observation {
    std::int64_t row = 0;
    bool first_wins = false;
  };
  /// The pairs of the last add(), with repetitions.
  std::span<const Observation> latest() const { return latest_; }
  /// Pairs that are older than the last add().
  std::int64_t earlier() const { return earlier_.total(); }
  /// The row of one of them: each is drawn with the same probability, by its own counter (round, 0, draw).
  std::int64_t draw_earlier(PhiloxKey key, std::uint32_t round, std::uint32_t draw) const;

  void fields(StateFields& state) override;

 private:
  struct Key {
    std::int64_t first;
    std::int64_t second;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::int64_t row_of(const QueryDocs& query, std::int32_t first, std::int32_t second);
  Key key_of(std::int64_t row) const;

  std::int64_t features_;
  std::int64_t stride_;
  std::int64_t observed_ = 0;
  std::vector<double> rows_;
  Lineage rows_lineage_;
  std::vector<double> count_;
  std::vector<double> first_wins_;
  std::vector<std::int64_t> docs_;  // first and second of each row
  std::unordered_map<Key, std::int64_t, Hash> row_of_;
  std::vector<Observation> latest_;
  CountTree earlier_;  // pairs of each row that are older than latest_
};

}  // namespace olrank
