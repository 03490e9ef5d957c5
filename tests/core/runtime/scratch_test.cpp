#include "core/runtime/execution_context.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace olrank {
namespace {

TEST(ScratchTest, ReturnsDistinctAlignedMemory) {
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const auto a = scratch.take<double>(100);
  const auto b = scratch.take<float>(7);
  const auto empty = scratch.take<double>(0);
  EXPECT_EQ(empty.size(), 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % Scratch::kAlignment, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % Scratch::kAlignment, 0U);
  EXPECT_GE(reinterpret_cast<const char*>(b.data()), reinterpret_cast<const char*>(a.data() + a.size()));
}

TEST(ScratchTest, StopsGrowingAndKeepsMemoryOfOuterFrames) {
  Scratch scratch;
  std::size_t after_first = 0;
  for (int repeat = 0; repeat < 10; ++repeat) {
    const Scratch::Frame outer(scratch);
    const auto kept = scratch.take<int>(1000);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int>(i);
    {
      const Scratch::Frame inner(scratch);
      for (double& value : scratch.take<double>(1 << 20)) value = -1.0;
    }
    for (double& value : scratch.take<double>(1 << 19)) value = -2.0;
    for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i], static_cast<int>(i));
    if (repeat == 0) after_first = scratch.capacity();
  }
  EXPECT_EQ(scratch.capacity(), after_first);
}

}  // namespace
}  // namespace olrank
