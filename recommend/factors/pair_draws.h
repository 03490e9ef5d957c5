#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/math/philox.h"
#include "recommend/reviews.h"

namespace olrank {

/// How many blocks so many things make; the last one may be shorter.
constexpr std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

/// (i; j, l) of D_i: user i prefers item j to item l.
struct ItemPair {
  std::int32_t user = 0;
  std::int32_t winner = 0;
  std::int32_t loser = 0;
};

/// Draws pairs of D_i = {(j, l): A_ij > A_il, or j reviewed by i and l not}. Jia, PhD thesis, UVA 2022, Eq.
/// (4.1.4). Pair s of N takes its winner from the s-th of N equal parts of all reviews in the order of
/// users, so that the pairs of a user are neighbours and every review is drawn as often; losers are
/// uniform.
class PairDraws {
 public:
  explicit PairDraws(const RatingRows& by_user, std::int64_t items);

  std::int64_t reviews() const { return std::ssize(users_); }

  /// Pairs [begin, begin + pairs.size()) of the `count` of an iteration; begin is a multiple of kBlock. A
  /// user who has reviewed nearly all items at least as high gets a pair of equal items, without effect.
  void draw(PhiloxKey key, std::uint32_t iteration, std::int64_t begin, std::int64_t count,
            std::span<ItemPair> pairs) const;

  static constexpr std::int64_t kBlock = 256;

 private:
  const RatingRows& by_user_;
  std::int64_t items_;
  std::vector<std::int32_t> users_;  // of each review, in the order of by_user_
};

/// Which samples of a batch belong to each row, in the order of the samples: sums over them are the same on
/// any number of threads. Samples of row −1 belong to none.
class RowIndex {
 public:
  void build(std::span<const std::int32_t> row_of_sample, std::int64_t rows);

  std::span<const std::int32_t> samples_of(std::int64_t row) const {
    return {samples_.data() + ends_[row], static_cast<std::size_t>(ends_[row + 1] - ends_[row])};
  }

 private:
  std::vector<std::int32_t> ends_;
  std::vector<std::int32_t> samples_;
};

/// δ = −weight · σ(−z) for the differences z of the scores of winners and losers, and the sum of −ln σ(z).
/// Jia, PhD thesis, UVA 2022, Eq. (4.1.9), the term of λ_B.
double pair_slopes(std::span<const float> differences, double weight, std::span<float> slopes);

}  // namespace olrank
