#include "models/baselines/epsilon_greedy.h"

#include <cassert>
#include <numeric>

namespace olrank {

void epsilon_greedy_list(std::span<const std::int32_t> best_first, double epsilon, PhiloxKey key,
                         std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list,
                         std::span<double> propensity) {
  assert(list.size() == best_first.size());
  const std::size_t docs = best_first.size();
  const Scratch::Frame frame(scratch);
  // The remaining documents are at the front of `pool`, in no order; `slot` is the position of each.
  const auto pool = scratch.take<std::int32_t>(docs);
  const auto slot = scratch.take<std::size_t>(docs);
  std::iota(pool.begin(), pool.end(), 0);
  std::iota(slot.begin(), slot.end(), std::size_t{0});
  std::size_t remaining = docs;
  std::size_t best = 0;  // in best_first; moves past what is placed
  for (std::size_t rank = 0; rank < docs; ++rank) {
    RngStream coins(key, round, 0, static_cast<std::uint32_t>(rank));
    while (slot[best_first[best]] >= remaining) ++best;
    std::int32_t doc = best_first[best];
    if (coins.uniform() < epsilon) doc = pool[coins.index(static_cast<std::uint32_t>(remaining))];
    list[rank] = doc;
    propensity[rank] =
        epsilon / static_cast<double>(remaining) + (doc == best_first[best] ? 1.0 - epsilon : 0.0);
    // Replaced by the last one of the pool, which shrinks by one.
    --remaining;
    const std::size_t hole = slot[doc];
    const std::int32_t last = pool[remaining];
    pool[hole] = last;
    slot[last] = hole;
    pool[remaining] = doc;
    slot[doc] = remaining;
  }
}

}  // namespace olrank
