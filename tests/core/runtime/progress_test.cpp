#include "core/runtime/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace olrank {
namespace {

TEST(ProgressTest, FormatsDurations) {
  EXPECT_EQ(readable_duration(0.4), "0s");
  EXPECT_EQ(readable_duration(61), "1m01s");
  EXPECT_EQ(readable_duration(3725), "1h02m");
  EXPECT_EQ(readable_duration(-1), "?");
  EXPECT_EQ(readable_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(readable_duration(std::nan("")), "?");
}

}  // namespace
}  // namespace olrank
