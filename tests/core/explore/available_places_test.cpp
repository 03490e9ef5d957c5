#include "core/explore/exploring_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random/rng_stream.h"
#include "tests/core/explore/slow_orders.h"

namespace olrank {
namespace {

/// The places of [begin, end) that are not taken and that no other such place is certainly before.
std::vector<std::int64_t> slow_available(const OrderTable& table, const std::vector<bool>& taken,
                                         std::size_t begin, std::size_t end) {
  std::vector<std::int64_t> found;
  for (std::size_t place = begin; place < end; ++place) {
    bool free = !taken[place];
    for (std::size_t above = begin; above < place; ++above)
      free = free && (taken[above] || !table[above][place]);
    if (free) found.push_back(static_cast<std::int64_t>(place));
  }
  return found;
}

TEST(AvailablePlacesTest, MatchTheDefinitionAfterEveryPlace) {
  AvailablePlaces available;
  std::int64_t choices = 0;
  for (std::uint32_t number = 0; number < 60; ++number) {
    RngStream coins(make_key({.seed = 33, .purpose = Purpose::kProbe}), number);
    constexpr std::size_t kDocs[] = {1, 2, 63, 64, 65, 127, 128, 129, 150, 200};
    constexpr double kShares[] = {0.0, 0.02, 0.3, 0.9, 1.0};
    const std::size_t docs = kDocs[number % 10];
    const OrderTable table = random_table(coins, docs, kShares[coins.index(5)]);
    const OrderBits orders = bits_of(table);
    // All places at first, then a part of them.
    const bool all = number < 20;
    const std::size_t begin = all ? 0 : coins.index(static_cast<std::uint32_t>(docs));
    const std::size_t end = all ? docs : begin + coins.index(static_cast<std::uint32_t>(docs - begin + 1));
    available.reset(orders, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    std::vector<bool> taken(docs, false);
    for (std::size_t rank = begin; rank < end; ++rank) {
      const auto expected = slow_available(table, taken, begin, end);
      ASSERT_EQ(available.count(), std::ssize(expected)) << number << ", rank " << rank;
      const std::int64_t n = coins.index(static_cast<std::uint32_t>(expected.size()));
      const std::int64_t place = available.take(n);
      ASSERT_EQ(place, expected[n]) << number << ", rank " << rank;
      taken[place] = true;
      choices += std::ssize(expected) - 1;
    }
    ASSERT_EQ(available.count(), 0) << number;
  }
  EXPECT_GT(choices, 10'000);
}

}  // namespace
}  // namespace olrank
