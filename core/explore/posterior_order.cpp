#include "core/explore/posterior_order.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace olrank {

void CentredCovariance::find(std::span<const double> width_sq, std::size_t docs) {
  assert(width_sq.size() == docs * docs);
  width_sq_ = width_sq;
  row_mean_.assign(docs, 0.0);
  mean_ = 0.0;
  for (std::size_t i = 0; i < docs; ++i) {
    for (std::size_t j = 0; j < docs; ++j) row_mean_[i] += width_sq[i * docs + j];
    row_mean_[i] /= static_cast<double>(docs);
    mean_ += row_mean_[i] / static_cast<double>(docs);
  }
}

/// Adds α L z column by column. L is the Cholesky factor of C with pivots: each column belongs to the
/// document with the largest variance left, and what rounding leaves ends it. Linear models have no more
/// columns than features.
void PosteriorOrder::draw(double alpha, std::uint32_t round) {
  constexpr double kRounding = 1e-12;
  const std::size_t docs = scores_.size();
  left_.resize(docs);
  for (std::size_t i = 0; i < docs; ++i) left_[i] = covariance_(i, i);
  columns_.clear();
  double least = 0.0;
  for (std::size_t column = 0; column < docs; ++column) {
    const auto pivot =
        static_cast<std::size_t>(std::max_element(left_.begin(), left_.end()) - left_.begin());
    if (column == 0) least = kRounding * left_[pivot];
    if (!(left_[pivot] > least)) return;
    const double length = std::sqrt(left_[pivot]);
    columns_.resize((column + 1) * docs);
    const auto added = std::span(columns_).subspan(column * docs);
    for (std::size_t i = 0; i < docs; ++i) added[i] = covariance_(i, pivot);
    for (std::size_t before = 0; before < column; ++before) {
      const auto earlier = std::span(columns_).subspan(before * docs, docs);
      const double factor = earlier[pivot];
      for (std::size_t i = 0; i < docs; ++i) added[i] -= factor * earlier[i];
    }
    const double coin = RngStream(draw_key_, round, static_cast<std::uint32_t>(pivot)).normal();
    for (std::size_t i = 0; i < docs; ++i) {
      added[i] /= length;
      left_[i] -= added[i] * added[i];
      scores_[i] += alpha * added[i] * coin;
    }
    left_[pivot] = 0.0;
  }
}

std::span<const std::int32_t> PosteriorOrder::find(const ScoreBelief& belief, std::uint32_t round) {
  const std::size_t docs = belief.scores.size();
  scores_.assign(belief.scores.begin(), belief.scores.end());
  covariance_.find(belief.width_sq, docs);
  if (rule_ == ListRule::kSample) {
    draw(belief.alpha, round);
  } else {
    for (std::size_t i = 0; i < docs; ++i)
      scores_[i] += belief.alpha * std::sqrt(std::max(covariance_(i, i), 0.0));
  }
  coins_.resize(docs);
  for (std::size_t i = 0; i < docs; ++i) {
    if (!std::isfinite(scores_[i]) || !std::isfinite(covariance_(i, i)))
      throw NumericError("A score that the posterior gives is not finite: use a larger lambda.");
    RngStream coins(tie_key_, round, static_cast<std::uint32_t>(i));
    const std::uint64_t high = coins.next_bits();
    coins_[i] = high << 32 | coins.next_bits();
  }
  order_.resize(docs);
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
    if (scores_[a] != scores_[b]) return scores_[a] > scores_[b];
    return coins_[a] < coins_[b] || (coins_[a] == coins_[b] && a < b);
  });
  propensity_.clear();
  if (rule_ == ListRule::kSample) return order_;
  propensity_.resize(docs);
  for (std::size_t rank = docs; rank-- > 0;) {
    const bool ties = rank + 1 < docs && scores_[order_[rank]] == scores_[order_[rank + 1]];
    propensity_[rank] = ties ? 1.0 / (1.0 / propensity_[rank + 1] + 1.0) : 1.0;
  }
  return order_;
}

}  // namespace olrank
