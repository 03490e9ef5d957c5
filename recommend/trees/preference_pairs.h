#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recommend/training_data.h"

namespace olrank {

/// A pair of D_i = {(j, l): r_ij > r_il, or j rated by i and l not}.
struct PreferencePair {
  std::int32_t user = 0;
  std::int32_t winner = 0;  // j
  std::int32_t loser = 0;   // l
};

/// A sample of D: `per_rating` pairs for each rating (i, j), each with an item l drawn uniformly until (j,
/// l) is in D_i, at most eight times. In the order of users and items; a pair's draws belong to the seed,
/// the pass, the user and the item.
std::vector<PreferencePair> sample_preference_pairs(const RatingRows& by_user, std::int64_t items,
                                                    std::int64_t per_rating, std::uint64_t seed,
                                                    std::int64_t pass);

/// A term −log σ(z) of the loss of some rows, with z = offset + w·(x(plus) − x(minus)). `plus` and `minus`
/// are places among the rows; −1 stands for something whose factor is fixed and inside w or the offset.
struct PairTerm {
  std::int32_t plus = -1;
  std::int32_t minus = -1;
  float offset = 0.0F;
};

/// Which pairs concern each row, in the order of the pairs.
struct PairIndex {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int64_t> pairs;

  std::span<const std::int64_t> of(std::int64_t row) const {
    return {pairs.data() + begin[row], pairs.data() + begin[row + 1]};
  }
};
PairIndex index_by_user(std::span<const PreferencePair> pairs, std::int64_t users);
/// Winners and losers.
PairIndex index_by_item(std::span<const PreferencePair> pairs, std::int64_t items);

}  // namespace olrank
