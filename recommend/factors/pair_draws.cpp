#include "recommend/factors/pair_draws.h"

#include <algorithm>
#include <cassert>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

constexpr int kMostTries = 16;

}  // namespace

PairDraws::PairDraws(const RatingRows& by_user, std::int64_t items) : by_user_(by_user), items_(items) {
  users_.reserve(by_user.others.size());
  for (std::int64_t user = 0; user < by_user.rows(); ++user)
    users_.insert(users_.end(), by_user.count(user), static_cast<std::int32_t>(user));
}

void PairDraws::draw(PhiloxKey key, std::uint32_t iteration, std::int64_t begin, std::int64_t count,
                     std::span<ItemPair> pairs) const {
  assert(begin % kBlock == 0 && std::ssize(pairs) <= kBlock);
  RngStream random(key, iteration, static_cast<std::uint32_t>(begin / kBlock));
  const auto items = static_cast<std::uint32_t>(items_);
  for (std::int64_t s = 0; s < std::ssize(pairs); ++s) {
    const double part =
        static_cast<double>(begin + s) + static_cast<double>(random.next_bits()) * 0x1.0p-32;
    const auto place = std::min(
        static_cast<std::int64_t>(part * static_cast<double>(reviews()) / static_cast<double>(count)),
        reviews() - 1);
    ItemPair& pair = pairs[s];
    pair.user = users_[place];
    pair.winner = pair.loser = by_user_.others[place];
    const auto own = by_user_.others_of(pair.user);
    const float rating = by_user_.ratings[place];
    for (int tried = 0; tried < kMostTries; ++tried) {
      const auto other = static_cast<std::int32_t>(random.index(items));
      const auto found = std::lower_bound(own.begin(), own.end(), other);
      if (found != own.end() && *found == other &&
          !(by_user_.ratings_of(pair.user)[found - own.begin()] < rating))
        continue;
      pair.loser = other;
      break;
    }
  }
}

}  // namespace olrank
