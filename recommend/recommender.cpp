#include "recommend/recommender.h"

#include "core/error.h"

namespace olrank {

void Recommender::score_new_user(std::span<const KnownReview>, std::span<float>) const {
  throw InvalidArgument(
      "This recommender knows only the users of its training: new users need one of kind fact, fmf or "
      "popular.");
}

std::optional<Explanation> Recommender::explain(std::int64_t, std::int64_t, const ReviewNames&) const {
  return std::nullopt;
}

}  // namespace olrank
