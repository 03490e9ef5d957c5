#include "core/runtime/log.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

TEST(UtcTime, WritesMilliseconds) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(1764158400007), "2025-11-26T12:00:00.007Z");
  EXPECT_EQ(utc_text(951782400000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59.999Z");
}

TEST(UtcTime, ReadsWhatItWrites) {
  for (const std::int64_t time : {0LL, 1LL, 951782399999LL, 1764158400007LL, 4102444800000LL, -86400001LL})
    EXPECT_EQ(utc_milliseconds(utc_text(time)), time);
}

TEST(UtcTime, ReadsFractionsAndOffsets) {
  constexpr std::int64_t kNoon = 1764158400000;
  for (const char* text :
       {"2025-11-26T12:00:00Z", "2025-11-26t12:00:00z", "2025-11-26 12:00:00", "2025-11-26T12:00:00+00:00",
        "2025-11-26T13:30:00+01:30", "2025-11-26T07:00:00-0500", "2025-11-26T12:00:00.0000004Z"})
    EXPECT_EQ(utc_milliseconds(text), kNoon) << text;
  EXPECT_EQ(utc_milliseconds("2025-11-26T12:00:00.1Z"), kNoon + 100);
  EXPECT_EQ(utc_milliseconds("2025-11-26T12:00:00,0129Z"), kNoon + 12);
}

TEST(UtcTime, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2025-11-26", "2025-11-26T12:00", "2025-13-01T00:00:00Z", "2025-02-29T00:00:00Z",
        "2025-11-26T24:00:00Z", "2025-11-26T12:60:00Z", "2025-11-26T12:00:00Zulu", "2025-11-26T12:00:00.Z",
        "2025-11-26T12:00:00+1", "25-11-26T12:00:00Z", "now"})
    EXPECT_FALSE(utc_milliseconds(text)) << text;
}

}  // namespace
}  // namespace olrank
