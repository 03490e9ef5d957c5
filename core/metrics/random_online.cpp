#include "core/metrics/random_online.h"

#include <algorithm>

namespace olrank {

RandomOnline::RandomOnline(const OnlineOptions& options)
    : options_(options), gains_(gain_table(options.gain)) {}

RandomNdcg RandomOnline::observe(std::span<const std::uint8_t> grades) {
  const std::int64_t shown = std::min(options_.cutoff, std::ssize(grades));
  discounts_.reach(shown);
  const GradeCounts counts = count_grades(grades);
  const double ideal = ideal_dcg(counts, shown, gains_, discounts_.values());
  RandomNdcg ndcg;
  if (ideal > 0.0) {
    const RandomDcg dcg = random_dcg(counts, shown, gains_, discounts_.values());
    ndcg = {dcg.mean / ideal, dcg.variance / (ideal * ideal)};
  }
  ++rounds_;
  ndcg_sum_ += ndcg.mean;
  discounted_ndcg_ += weight_ * ndcg.mean;
  weight_ *= options_.discount;
  regret_ += 0.5 * static_cast<double>(graded_pairs(counts));
  return ndcg;
}

double RandomOnline::mean_ndcg() const {
  return rounds_ > 0 ? ndcg_sum_ / static_cast<double>(rounds_) : 0.0;
}

}  // namespace olrank
