#include "sim/trial_settings.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "core/online/online_ranker.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

PhiloxKey key(std::uint64_t seed) {
  return TrialKeys::of(seed, 1, "perfect").key(Purpose::kQuery);
}

/// Two statistics: a false alarm in 2e-10 of all keys.
TEST(UniformQueriesTest, DrawsEveryQueryEquallyOften) {
  for (const std::int64_t queries : {2, 97}) {
    const UniformQueries source(key(1), queries);
    std::vector<std::int64_t> counts(queries, 0);
    for (std::uint32_t round = 1; round <= 50'000; ++round) {
      const std::int64_t query = source.query_of(round);
      ASSERT_GE(query, 0);
      ASSERT_LT(query, queries);
      ++counts[query];
    }
    const std::vector<double> same(counts.size(), 1.0 / static_cast<double>(queries));
    const ChiSquare uniform = chi_square(counts, same);
    EXPECT_LE(uniform.statistic, uniform.bound(kTail)) << queries;
  }
}

TEST(UniformQueriesTest, IsAFunctionOfTheRoundAndTheKey) {
  const UniformQueries source(key(1), 1'000'000);
  const UniformQueries same(key(1), 1'000'000);
  const UniformQueries other(key(2), 1'000'000);
  int differs = 0;
  for (std::uint32_t round = 100; round > 0; --round) {
    EXPECT_EQ(source.query_of(round), same.query_of(round));
    if (source.query_of(round) != other.query_of(round)) ++differs;
  }
  EXPECT_GT(differs, 90);
  EXPECT_EQ(UniformQueries(key(1), 1).query_of(7), 0);
}

TEST(UniformQueriesTest, RefusesZeroQueries) {
  EXPECT_THROW(UniformQueries(key(1), 0), InvalidArgument);
  EXPECT_THROW(UniformQueries(key(1), -3), InvalidArgument);
  EXPECT_THROW(UniformQueries(key(1), std::int64_t{1} << 32), InvalidArgument);
}

}  // namespace
}  // namespace olrank
