#include "core/math/normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace olrank {
namespace {

long double cosine(int times, double x) {
  return std::cos(std::numbers::pi_v<long double> * times * static_cast<long double>(x));
}

TEST(CosineTest, KeepsItsPromisedError) {
  for (int step = 0; step <= 100'000; ++step) {
    const double x = step / 100'000.0;
    const double first = cosine_of_half_turns(x);
    ASSERT_LE(std::fabs(first - cosine(1, x)), 3e-16L) << x;
    const HigherCosines higher = higher_cosines(first);
    for (int term = 0; term < HigherCosines::kTerms; ++term)
      ASSERT_LE(std::fabs(higher.of[term] - cosine(term + 2, x)), 5e-15L) << x << ' ' << term;
  }
}

TEST(CosineTest, IsExactAtTheMiddleAndBalancedAtTheEnds) {
  EXPECT_EQ(cosine_of_half_turns(0.5), 0.0);
  EXPECT_EQ(cosine_of_half_turns(0.0), -cosine_of_half_turns(1.0));
}

}  // namespace
}  // namespace olrank
