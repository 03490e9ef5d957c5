#include "core/random/rng_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "tests/support/chi_square.h"

namespace olrank {
namespace {

PhiloxKey rng_stream_key(std::uint64_t seed = 1) {
  return make_key({.seed = seed, .purpose = Purpose::kProbe});
}

// Draws are part of every result, so their values are fixed here once and for all: a change of any of them
// changes every trajectory that was ever published with this program.
TEST(RngStreamTest, NeverChangesItsDraws) {
  const PhiloxKey key =
      make_key({.seed = 42, .purpose = Purpose::kClick, .fold = 3, .click_model = 7, .member = 0});
  RngStream stream(key, 5, 2, 1);
  const PhiloxCounter block = philox4x32_10(PhiloxCounter{{5, 2, 1, 0}}, key);
  for (const std::uint32_t word : block.word) EXPECT_EQ(stream.next_bits(), word);
  const PhiloxCounter next = philox4x32_10(PhiloxCounter{{5, 2, 1, 1}}, key);
  EXPECT_EQ(stream.next_bits(), next.word[0]);
}

TEST(RngStreamTest, KeysDifferInEveryPart) {
  std::set<std::uint64_t> keys;
  for (const KeySource& source : std::vector<KeySource>{
           {.seed = 1, .purpose = Purpose::kList, .fold = 1, .click_model = 1, .member = 1},
           {.seed = 2, .purpose = Purpose::kList, .fold = 1, .click_model = 1, .member = 1},
           {.seed = 1, .purpose = Purpose::kClick, .fold = 1, .click_model = 1, .member = 1},
           {.seed = 1, .purpose = Purpose::kList, .fold = 2, .click_model = 1, .member = 1},
           {.seed = 1, .purpose = Purpose::kList, .fold = 1, .click_model = 2, .member = 1},
           {.seed = 1, .purpose = Purpose::kList, .fold = 1, .click_model = 1, .member = 2}}) {
    const PhiloxKey key = make_key(source);
    keys.insert((std::uint64_t{key.word[1]} << 32) | key.word[0]);
  }
  EXPECT_EQ(keys.size(), 6U);
}

TEST(RngStreamTest, IndicesBelowTwoToThe32AreTheSameForAnyCount) {
  for (const std::uint32_t bound : {1U, 7U, 4294967295U}) {
    RngStream one(rng_stream_key(), 3);
    RngStream other(rng_stream_key(), 3);
    for (int draw = 0; draw < 100; ++draw) EXPECT_EQ(one.index_of(bound), std::int64_t{other.index(bound)});
  }
}

// Six equal parts of a range of 1.5 · 2³²: χ², false alarm one in a million.
TEST(RngStreamTest, IndicesOfLargeCountsAreUniform) {
  constexpr std::int64_t kCount = 3 * (std::int64_t{1} << 31);
  RngStream draws(rng_stream_key(), 4);
  std::vector<std::int64_t> counts(6);
  std::int64_t odd = 0;
  for (int draw = 0; draw < 60'000; ++draw) {
    const std::int64_t drawn = draws.index_of(kCount);
    ASSERT_TRUE(drawn >= 0 && drawn < kCount);
    ++counts[drawn / (kCount / 6)];
    odd += drawn % 2;
  }
  const ChiSquare test = chi_square(counts, std::vector<double>(6, 1.0 / 6.0));
  EXPECT_FALSE(test.impossible_seen);
  EXPECT_LT(test.statistic, test.bound(kMillionth));
  EXPECT_LT(std::abs(static_cast<double>(odd) - 30'000.0), 5.0 * std::sqrt(15'000.0));
  RngStream exact(rng_stream_key(), 5);
  EXPECT_GE(exact.index_of(std::int64_t{1} << 62), 0);
}

TEST(RngStreamTest, UniformStaysInItsHalfOpenInterval) {
  EXPECT_EQ(uniform_from_bits(0, 0), 0.0);
  EXPECT_EQ(uniform_from_bits(0xFFFFFFFF, 0xFFFFFFFF), 1.0 - 0x1.0p-53);
  EXPECT_TRUE(std::isfinite(normal_from_bits(0, 0)));
  EXPECT_EQ(normal_from_bits(0, 0), -normal_from_bits(0xFFFFFFFF, 0xFFFFFFFF));
}

TEST(RngStreamTest, LargeBoundsHaveNoModuloBias) {
  // With bound 3·2^30, taking bits modulo the bound would give the lowest third twice the weight.
  constexpr std::uint32_t kBound = 3U << 30;
  std::vector<std::int64_t> counts(3, 0);
  RngStream stream(rng_stream_key(), 0);
  for (int i = 0; i < 100'000; ++i) ++counts[stream.index(kBound) / (1U << 30)];
  EXPECT_TRUE(counts_are_even(counts));
}

TEST(RngStreamTest, NormalsMatchTheirQuantiles) {
  constexpr int kCells = 64;
  std::vector<std::int64_t> counts(kCells, 0);
  RngStream stream(rng_stream_key(3), 0);
  double sum = 0.0;
  double sum_sq = 0.0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normal();
    sum += x;
    sum_sq += x * x;
    const double u = 0.5 * std::erfc(-x / std::sqrt(2.0));
    ++counts[std::min(kCells - 1, static_cast<int>(u * kCells))];
  }
  EXPECT_TRUE(counts_are_even(counts));
  // Five standard errors: false alarms under 1e-6.
  EXPECT_LT(std::abs(sum / kDraws), 5.0 / std::sqrt(kDraws));
  EXPECT_LT(std::abs(sum_sq / kDraws - 1.0), 5.0 * std::sqrt(2.0 / kDraws));
}

TEST(RngStreamTest, ShufflesAreUniform) {
  std::map<std::array<int, 4>, std::int64_t> seen;
  for (std::uint32_t round = 0; round < 48'000; ++round) {
    std::array<int, 4> items = {0, 1, 2, 3};
    RngStream(rng_stream_key(4), round).shuffle(std::span<int>(items));
    ++seen[items];
  }
  ASSERT_EQ(seen.size(), 24U);
  std::vector<std::int64_t> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_TRUE(counts_are_even(counts));
}

TEST(RngStreamTest, UnitVectorsAreUniformOnSphere) {
  constexpr std::size_t kDimensions = 5;
  constexpr int kVectors = 20'000;
  std::array<double, kDimensions> mean{};
  for (std::uint32_t round = 0; round < kVectors; ++round) {
    std::array<double, kDimensions> vector{};
    RngStream(rng_stream_key(5), round).unit_vector(vector);
    double norm_sq = 0.0;
    for (std::size_t i = 0; i < kDimensions; ++i) {
      norm_sq += vector[i] * vector[i];
      mean[i] += vector[i] / kVectors;
    }
    EXPECT_NEAR(norm_sq, 1.0, 1e-14);
  }
  // A coordinate has variance 1/d; five standard errors.
  for (const double coordinate : mean)
    EXPECT_LT(std::abs(coordinate), 5.0 / std::sqrt(kDimensions * kVectors));
}

}  // namespace
}  // namespace olrank
