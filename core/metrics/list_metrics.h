#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/math/dcg.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// dcg_gain of every grade.
using GainTable = std::array<double, kHighestGrade + 1>;

GainTable gain_table(Gain gain);

/// Discounts of the first ranks, computed once and extended as needed.
class DiscountTable {
 public:
  explicit DiscountTable(Discount discount = Discount::kLog2) : discount_(discount) {}
  void reach(std::int64_t ranks);
  std::span<const double> values() const { return values_; }

 private:
  Discount discount_;
  std::vector<double> values_;
};

/// Σ gain · discount over the given grades, best rank first. `discounts` covers them.
double dcg_of_list(std::span<const std::uint8_t> shown_grades, const GainTable& gains,
                   std::span<const double> discounts);

/// The largest DCG that `ranks` ranks can have. Summed in the order of ranks as dcg_of_list does, so that
/// an ideal list divided by it is exactly 1.
double ideal_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                 std::span<const double> discounts);

/// DCG of a random list: its mean and variance over all orders of a query's documents, each equally likely.
struct RandomDcg {
  double mean = 0.0;
  double variance = 0.0;
};

/// Lists of these documents are cut off after `ranks`. The result is exact, from the grades alone.
RandomDcg random_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                     std::span<const double> discounts);

/// Number of mis-ordered pairs: different grades, the lower one ranked first. O(V · max_grade), cheaper
/// than a V log V merge for the few grades in use.
std::int64_t misordered_pairs(std::span<const std::uint8_t> list_grades, int max_grade);

/// Puts the documents of one query in order of descending score, ties by index: order[rank] is a document.
/// An order with fewer places than documents gets the first ranks, and the rest is not sorted. −0 and +0
/// tie; infinities are scores like others. Returns the first document whose score is not a number, or −1
/// when all are; the order is not written in the first case.
std::int64_t order_by_score(std::span<const float> scores, std::span<std::int32_t> order, Scratch& scratch);
std::int64_t order_by_score(std::span<const double> scores, std::span<std::int32_t> order,
                            Scratch& scratch);

/// A document's name in run files: its own, or its index within the query, from 0.
class DocLabel {
 public:
  DocLabel(const Dataset& data, std::int64_t query, std::int64_t doc)
      : name_(data.doc_name(data.offset(query) + doc)) {
    if (!name_.empty()) return;
    const auto end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), doc).ptr;
    length_ = static_cast<std::size_t>(end - digits_.data());
  }

  /// Valid while this label and the data set live.
  std::string_view view() const {
    return name_.empty() ? std::string_view(digits_.data(), length_) : name_;
  }

 private:
  std::string_view name_;
  std::array<char, 20> digits_;
  std::size_t length_ = 0;
};

/// NDCG of the shown lists, summed over the rounds.
struct OnlineSums {
  std::int64_t rounds = 0;
  double ndcg_sum = 0.0;
  double discounted_ndcg = 0.0;  // Σ_t γ^{t−1} NDCG@k(shown)
  double weight = 1.0;           // γ^{t−1} of the next round

  void add(double ndcg, double discount);
  double mean_ndcg() const;  // over all rounds so far; 0 before the first

  friend bool operator==(const OnlineSums&, const OnlineSums&) = default;
};

/// The accumulators of online metrics. Saved and restored, later results keep their bits.
struct OnlineState : OnlineSums {
  std::int64_t regret = 0;             // Σ_t mis-ordered pairs of the full list
  std::vector<std::int64_t> exposure;  // [cutoff × (max_grade + 1)], times a grade was shown at a rank

  friend bool operator==(const OnlineState&, const OnlineState&) = default;
};

struct OnlineOptions {
  std::int64_t cutoff = 10;  // ranks shown
  double discount = 0.9995;  // γ, in (0, 1]
  int max_grade = 4;         // of the data; bounds the table of exposure
  Gain gain = Gain::kExponential;
};

/// Accumulates metrics of the shown lists, round by round. A query without a relevant document counts 0,
/// regardless of the rule for offline metrics.
class OnlineMetrics {
 public:
  explicit OnlineMetrics(const OnlineOptions& options);

  /// `list` is the full list of the query's documents, best first, of which the first `cutoff` were shown;
  /// `grades` are by document. Returns NDCG@cutoff of what was shown. Allocates nothing for queries no
  /// longer than those before.
  double observe(std::span<const std::uint8_t> grades, std::span<const std::int32_t> list);

  std::int64_t rounds() const { return state_.rounds; }
  double mean_ndcg() const { return state_.mean_ndcg(); }
  double discounted_ndcg() const { return state_.discounted_ndcg; }
  std::int64_t regret() const { return state_.regret; }
  std::int64_t exposure(std::int64_t rank, int grade) const;

  const OnlineState& state() const { return state_; }
  /// Throws InvalidArgument if the state was collected with another cutoff or largest grade.
  void restore(OnlineState state);

 private:
  OnlineOptions options_;
  GainTable gains_;
  DiscountTable discounts_;
  std::vector<std::uint8_t> list_grades_;
  OnlineState state_;
};

/// NDCG of a random list: its mean and variance over all orders of a query's documents.
struct RandomNdcg {
  double mean = 0.0;
  double variance = 0.0;
};

/// The expected online metrics of a ranker that shows every query in a random order: the baseline of
/// OnlineMetrics, under its rules. Exact, and a function of the queries alone.
class RandomOnline {
 public:
  explicit RandomOnline(const OnlineOptions& options);

  /// Counts a round with the query of these grades. Returns the NDCG of its random lists.
  RandomNdcg observe(std::span<const std::uint8_t> grades);

  double mean_ndcg() const { return sums_.mean_ndcg(); }
  double discounted_ndcg() const { return sums_.discounted_ndcg; }
  double regret() const { return regret_; }  // half of the pairs with different grades

 private:
  OnlineOptions options_;
  GainTable gains_;
  DiscountTable discounts_;
  OnlineSums sums_;
  double regret_ = 0.0;
};

}  // namespace olrank
