#include "recommend/trees/preference_pairs.h"

#include <algorithm>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

constexpr int kMostDraws = 8;

/// Whether (winner, l) is in D_i.
bool is_preferred(std::span<const std::int32_t> items, std::span<const float> ratings, float rating,
                  std::int32_t other) {
  const auto place = std::ranges::lower_bound(items, other);
  if (place == items.end() || *place != other) return true;
  return rating > ratings[place - items.begin()];
}

PairIndex pair_index(std::vector<std::int64_t> counts) {
  PairIndex index;
  index.begin.assign(counts.size() + 1, 0);
  for (std::size_t row = 0; row < counts.size(); ++row)
    index.begin[row + 1] = index.begin[row] + counts[row];
  index.pairs.resize(index.begin.back());
  return index;
}

}  // namespace

std::vector<PreferencePair> sample_preference_pairs(const RatingRows& by_user, std::int64_t items,
                                                    std::int64_t per_rating, std::uint64_t seed,
                                                    std::int64_t pass) {
  constexpr char kName[] = "trees";
  const PhiloxKey key = make_key(
      {.seed = seed, .purpose = Purpose::kReplay, .click_model = name_hash(kName, sizeof kName - 1)});
  std::vector<PreferencePair> pairs;
  pairs.reserve(by_user.others.size() * per_rating);
  for (std::int64_t user = 0; user < by_user.rows(); ++user) {
    const std::span<const std::int32_t> rated = by_user.others_of(user);
    const std::span<const float> ratings = by_user.ratings_of(user);
    for (std::size_t place = 0; place < rated.size(); ++place) {
      RngStream draws(key, static_cast<std::uint32_t>(pass), static_cast<std::uint32_t>(user),
                      static_cast<std::uint32_t>(rated[place]));
      for (std::int64_t number = 0; number < per_rating; ++number) {
        for (int draw = 0; draw < kMostDraws; ++draw) {
          const auto other = static_cast<std::int32_t>(draws.index_of(items));
          if (!is_preferred(rated, ratings, ratings[place], other)) continue;
          pairs.push_back({static_cast<std::int32_t>(user), rated[place], other});
          break;
        }
      }
    }
  }
  return pairs;
}

PairIndex index_by_user(std::span<const PreferencePair> pairs, std::int64_t users) {
  std::vector<std::int64_t> counts(users, 0);
  for (const PreferencePair& pair : pairs) ++counts[pair.user];
  PairIndex index = pair_index(std::move(counts));
  std::vector<std::int64_t> next(index.begin.begin(), index.begin.end() - 1);
  for (std::size_t number = 0; number < pairs.size(); ++number)
    index.pairs[next[pairs[number].user]++] = static_cast<std::int64_t>(number);
  return index;
}

PairIndex index_by_item(std::span<const PreferencePair> pairs, std::int64_t items) {
  std::vector<std::int64_t> counts(items, 0);
  for (const PreferencePair& pair : pairs) {
    ++counts[pair.winner];
    ++counts[pair.loser];
  }
  PairIndex index = pair_index(std::move(counts));
  std::vector<std::int64_t> next(index.begin.begin(), index.begin.end() - 1);
  for (std::size_t number = 0; number < pairs.size(); ++number) {
    index.pairs[next[pairs[number].winner]++] = static_cast<std::int64_t>(number);
    index.pairs[next[pairs[number].loser]++] = static_cast<std::int64_t>(number);
  }
  return index;
}

}  // namespace olrank
