#include "core/runtime/device.h"

#include <gtest/gtest.h>

#include <ctime>

namespace olrank {
namespace {

TEST(Host, NamesItsProcessorOnOneLine) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_EQ(cpu_model().find('\n'), std::string::npos);
}

TEST(UtcTime, ReadsBackWhatItWrites) {
  const auto now = utc_seconds(utc_now());
  ASSERT_TRUE(now);
  EXPECT_LE(std::abs(*now - static_cast<std::int64_t>(std::time(nullptr))), 2);
  EXPECT_EQ(utc_seconds("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(utc_seconds("2026-01-31T23:59:59Z"), 1769903999);
}

TEST(UtcTime, IsNothingForOtherTexts) {
  for (const char* text : {"", "yesterday", "2026-01-31", "2026-01-31T23:59:59", "2026-01-31T23:59:59Z+1"})
    EXPECT_FALSE(utc_seconds(text)) << text;
}

}  // namespace
}  // namespace olrank
