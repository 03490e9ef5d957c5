#include <gtest/gtest.h>

#include "sim/click_settings.h"
#include "sim/trial_settings.h"

namespace olrank {
namespace {

TEST(SimSettingsTest, ReferenceFollowsTheAuthorsCode) {
  EXPECT_EQ(ProtocolSettings::defaults(ProtocolName::kPaper).empty_queries, EmptyQueries::kZero);
  EXPECT_EQ(ProtocolSettings::defaults(ProtocolName::kReference).empty_queries, EmptyQueries::kSkip);
  EXPECT_EQ(ClickSettings::defaults(ProtocolName::kPaper).stop, StopDraw::kAfterClick);
  EXPECT_EQ(ClickSettings::defaults(ProtocolName::kReference).stop, StopDraw::kEveryDoc);
}

}  // namespace
}  // namespace olrank
