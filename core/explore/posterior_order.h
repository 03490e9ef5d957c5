#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/exploring_list.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A belief is what a Gaussian posterior knows about the scores of one query's documents.
struct ScoreBelief {
  std::span<const float> scores;     // [V]
  std::span<const double> width_sq;  // w², [V × V]: variances of the differences of scores
  double alpha = 0.0;                // α scales all standard deviations
};

/// The covariance of scores minus their mean over the documents, from the variances of their differences:
/// C_ij = ½ (r_i + r_j − r̄ − w²_ij), where r_i is the mean of w²_i· and r̄ that of r. A list depends on
/// differences of scores alone, so nothing is lost with the mean.
class CentredCovariance {
 public:
  void find(std::span<const double> width_sq, std::size_t docs);
  double operator()(std::size_t i, std::size_t j) const {
    return 0.5 * (row_mean_[i] + row_mean_[j] - mean_ - width_sq_[i * row_mean_.size() + j]);
  }

 private:
  std::span<const double> width_sq_;
  std::vector<double> row_mean_;  // r
  double mean_ = 0.0;             // r̄
};

/// Orders documents by scores that the posterior draws jointly, s + α L z with L Lᵀ = C and z ~ N(0, 1)
/// (ListRule::kSample), or by upper bounds s_i + α √C_ii (kUcb). Draws are keyed by (round, document);
/// equal scores come in a random order. A joint draw costs V r² for r independent scores. Memory is reused
/// from list to list.
class PosteriorOrder {
 public:
  /// `draw_key` is the trial's key of Purpose::kScores, `tie_key` that of Purpose::kList.
  PosteriorOrder(ListRule rule, PhiloxKey draw_key, PhiloxKey tie_key)
      : rule_(rule), draw_key_(draw_key), tie_key_(tie_key) {}

  /// The documents in their order, valid until the next call. Throws NumericError where a score is not
  /// finite.
  std::span<const std::int32_t> find(const ScoreBelief& belief, std::uint32_t round);
  /// The propensity of each rank, as in RankedList, is known for upper bounds, where only ties are drawn.
  std::span<const double> propensity() const { return propensity_; }
  /// The scores of the latest order.
  std::span<const double> scores() const { return scores_; }

 private:
  void draw(double alpha, std::uint32_t round);

  ListRule rule_;
  PhiloxKey draw_key_;
  PhiloxKey tie_key_;
  CentredCovariance covariance_;
  std::vector<double> scores_;
  std::vector<double> left_;     // variances that no column of L explains yet
  std::vector<double> columns_;  // of L, one after the other
  std::vector<std::uint64_t> coins_;
  std::vector<std::int32_t> order_;
  std::vector<double> propensity_;
};

}  // namespace olrank
