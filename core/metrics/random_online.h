#pragma once

#include <cstdint>
#include <span>

#include "core/metrics/list_metrics.h"
#include "core/metrics/online.h"

namespace olrank {

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

  double mean_ndcg() const;  // over all rounds so far; 0 before the first
  double discounted_ndcg() const { return discounted_ndcg_; }
  double regret() const { return regret_; }  // half of the pairs with different grades

 private:
  OnlineOptions options_;
  GainTable gains_;
  DiscountTable discounts_;
  std::int64_t rounds_ = 0;
  double ndcg_sum_ = 0.0;
  double discounted_ndcg_ = 0.0;
  double weight_ = 1.0;  // γ^{t−1} of the next round
  double regret_ = 0.0;
};

}  // namespace olrank
