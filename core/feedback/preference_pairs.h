#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Which examined documents form preference pairs.
enum class PairRule { kAdjacent, kMatched, kExpected, kAll };

struct PairSettings {
  PairRule pairs = PairRule::kAdjacent;
  std::vector<double> debias;  // P(examined) of the ranks from the first; empty: clicks count as they are
  std::int64_t examined_after = 1;  // l: unclicked documents behind the last click

  static const Schema& schema();
};

template <>
struct EnumNames<PairRule> {
  static constexpr std::array values = names_in_order<PairRule>("adjacent", "matched", "expected", "all");
};

/// The number of shown documents that count as examined: up to the last click and the `after` documents
/// behind it, which were not clicked; none without a click. Jia and Wang, SIGIR 2022, section 3.1, leave
/// their number open; PairRank and olRankNet have one.
std::int64_t examined_documents(std::span<const std::uint8_t> clicks, std::int64_t after = 1);

/// The preference pairs of a list's clicks. PairRule::kMatched and kExpected draw a matching from `coins`;
/// the other rules draw nothing. Pairs are in the order of ranks (kAdjacent, kAll: by winner, then loser)
/// or of the draw.
void preference_pairs(const PairSettings& settings, std::span<const std::int32_t> shown,
                      std::span<const std::uint8_t> clicks, RngStream coins,
                      std::vector<PreferencePair>& pairs);

/// The pairs of a round that enter the loss, all with one weight.
struct LossPairs {
  std::vector<PreferencePair> pairs;
  double weight = 1.0;
};

/// 1/P(examined) counts at most this: clicks at ranks that are hardly ever examined would be mostly noise.
inline constexpr double kMostDebiased = 10.0;
/// A click counts at most this, so that a round stays short.
inline constexpr double kMostCopies = 1000.0;

/// How much a click counts: its reward, or 1 without rewards, by 1/P(examined) of its rank, where `debias`
/// has these. Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
/// 2017: clicks weighted by inverse propensities.
double click_weight(const Feedback& feedback, std::span<const double> debias, std::size_t rank);

/// Repeats each pair as often as its winner's click counts: of weight w, it stands ⌊w⌋ times, and once more
/// with probability w − ⌊w⌋, so that histories fold the copies as they fold pairs of several rounds.
/// `key` is that which the pairs were drawn with; copies have draws of their own. Where all weights are 1,
/// nothing is drawn or changed.
void repeat_pairs(const Feedback& feedback, std::span<const double> debias, PhiloxKey key,
                  std::vector<PreferencePair>& pairs);

/// `drawn` is the result of preference_pairs() with `key`. PairRule::kExpected is the mean over all
/// matchings: every clicked against every unclicked document, weighted by the probability that a matching
/// contains the pair, 1/max(clicked, unclicked). With the other rules, the loss uses the drawn pairs. All
/// of them are repeated by repeat_pairs(); clicks of little weight may leave none.
void loss_pairs(const PairSettings& settings, const Feedback& feedback, PhiloxKey key,
                std::span<const PreferencePair> drawn, LossPairs& loss);

/// Names a document across rounds by its content: the same name in the same query with the same inputs is
/// the same document. 63 of the bits of XXH3; ten million documents collide with a probability below 1e-5.
std::int64_t doc_number(std::string_view query, std::span<const float> inputs, std::string_view name = {});

/// Names a query or a document by what its owner calls it.
std::int64_t name_number(std::string_view name);

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
