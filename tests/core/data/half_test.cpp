#include "core/data/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace olrank {
namespace {

/// (-1)^s 2^(e-15) (1 + m/1024), and of the smallest exponent (-1)^s 2^-14 m/1024.
double by_formula(std::uint32_t half) {
  const double sign = (half & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((half >> 10) & 31U);
  const double part = (half & 1023U) / 1024.0;
  return sign * (exponent == 0 ? std::ldexp(part, -14) : std::ldexp(1.0 + part, exponent - 15));
}

constexpr std::uint32_t kInfinity = 0x7C00;

TEST(Half, EveryNumberHasItsValueAndComesBack) {
  for (std::uint32_t size = 0; size < kInfinity; ++size) {
    for (const std::uint32_t half : {size, size | 0x8000U}) {
      const float value = float_of_half(static_cast<std::uint16_t>(half));
      ASSERT_EQ(value, by_formula(half));
      ASSERT_EQ(std::signbit(value), (half & 0x8000U) != 0);
      ASSERT_EQ(half_of(value), half);
    }
  }
  EXPECT_EQ(float_of_half(kInfinity - 1), kLargestHalf);
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t below = 0; below + 1 < kInfinity; ++below) {
    const double low = by_formula(below);
    const double high = by_formula(below + 1);
    const auto middle = static_cast<float>((low + high) / 2.0);
    ASSERT_EQ(half_of(middle), below + below % 2) << middle;
    ASSERT_EQ(half_of(-middle), (below + below % 2) | 0x8000U);
    ASSERT_EQ(half_of(std::nextafter(middle, 0.0F)), below);
    ASSERT_EQ(half_of(std::nextafter(middle, 1e9F)), below + 1);
  }
  EXPECT_EQ(half_of(1e-30F), 0);
}

}  // namespace
}  // namespace olrank
