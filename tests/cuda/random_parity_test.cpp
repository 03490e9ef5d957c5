#include <gtest/gtest.h>

#include "core/random/rng_stream.h"
#include "tests/cuda/random_draws.h"
#include "tests/support/gpu.h"

namespace olrank {
namespace {

// CPU and GPU share the coins: equal to the bit, so the comparison has no tolerance.
TEST(RandomParityTest, DeviceDrawsEqualTheCpus) {
  OLRANK_NEEDS_GPU();
  const PhiloxKey key = make_key({.seed = 11, .purpose = Purpose::kLabelNoise, .member = 3});
  for (const std::int64_t count : {0, 1, 31, 32, 33, 100'003}) {
    const DrawnOnDevice drawn = draw_on_device(key, count, 1000);
    for (std::int64_t i = 0; i < count; ++i) {
      RngStream stream(key, static_cast<std::uint32_t>(i), 1, 2);
      const auto place = static_cast<std::size_t>(i);
      ASSERT_EQ(drawn.bits[place], stream.next_bits()) << i;
      ASSERT_EQ(drawn.uniforms[place], stream.uniform()) << i;
      ASSERT_EQ(drawn.indices[place], stream.index(1000)) << i;
      ASSERT_EQ(drawn.normals[place], stream.normal()) << i;
    }
  }
}

}  // namespace
}  // namespace olrank
