#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/metrics/list_metrics.h"

namespace olrank {

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
