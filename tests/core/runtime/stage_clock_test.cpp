#include "core/runtime/stage_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace olrank {
namespace {

TEST(StageClockTest, SumsByName) {
  StageClock clock;
  clock.add("score", 1.5);
  clock.add("train", 2.0);
  clock.add("score", 0.5);
  EXPECT_EQ(clock.seconds("score"), 2.0);
  EXPECT_EQ(clock.seconds("train"), 2.0);
  EXPECT_EQ(clock.seconds("never"), 0.0);
  EXPECT_EQ(clock.total(), 4.0);
  ASSERT_EQ(clock.stages().size(), 2U);
  EXPECT_EQ(clock.stages()[0].name, "score");
}

TEST(StageClockTest, MeasuresScopesWhileStagesAreAdded) {
  StageClock clock;
  {
    const auto outer = clock.measure("outer");
    const auto inner = clock.measure("inner");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(clock.seconds("outer"), 0.005);
  EXPECT_GE(clock.seconds("outer"), clock.seconds("inner"));
}

}  // namespace
}  // namespace olrank
