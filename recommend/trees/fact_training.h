#pragma once

#include <cstdint>

#include "recommend/reviews.h"
#include "recommend/trees/squared_sums.h"

namespace olrank {

struct MatrixStartSettings {
  int dimension = 20;
  std::int64_t passes = 10;
  double step_size = 0.1;    // of AdaGrad
  double penalty = 0.02;     // of a squared factor, at each rating
  double pair_weight = 1.0;  // λ_b
  std::uint64_t seed = 1;
};

/// Item factors by plain matrix factorisation: Jia, Toward Reliable Decision-making in Information Systems,
/// PhD thesis, UVA 2022, Eq. (4.2.2), by AdaGrad over ratings, each with one pair, in the order of users.
FactorRows factorise_ratings(const RatingRows& by_user, std::int64_t items,
                             const MatrixStartSettings& settings);

}  // namespace olrank
