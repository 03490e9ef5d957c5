
#include <gtest/gtest.h>

#include "jobs/settings/configuration.h"
#include "sim/trial_settings.h"
#include "tests/jobs/settings/configuration_text.h"
#include "tests/support/cases.h"

namespace olrank {
namespace {

// tests/apps/commands/configuration.test has what a file and overrides give.
TEST(ConfigurationTest, ErrorsNameLocationAndNearestName) {
  for (const char* section : {"configuration", "users"})
    expect_cases("jobs/settings/configuration_test.txt", section,
                 [](const std::string& text) { return refusal_of(text); });
}

TEST(ConfigurationTest, UsersAreDescribedInOneLine) {
  expect_cases("jobs/settings/configuration_test.txt", "described", [](const std::string& text) {
    const Configuration found = from_text(text);
    return describe_user(found.clicks.models.front(), found.clicks, found.users, 2);
  });
}

TEST(ConfigurationTest, DefaultsOfNetworksFollowTheStart) {
  RankerSettings started = from_text("[[ranker]]\nkind = \"olranknet\"\n").rankers.front();
  EXPECT_EQ(started.posterior.lambda, 20.0);
  started.start_from = "model";
  EXPECT_EQ(RankerSettings::defaults(started, ProtocolName::kRecommended).posterior.lambda, 1000.0);
  EXPECT_EQ(RankerSettings::defaults(started, ProtocolName::kPaper).posterior.lambda, 10.0);
}

}  // namespace
}  // namespace olrank
