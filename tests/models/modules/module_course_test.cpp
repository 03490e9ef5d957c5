// The closed form's network as a module plays the closed form's rounds.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "models/ranker_memory.h"
#include "tests/models/neural/recorded_rounds.h"

namespace olrank {
namespace {

constexpr std::uint32_t kCourseRounds = 300;

/// The first round in which the two show other lists, or one more than the last.
std::uint32_t first_other_list(const RankerSettings& closed_form) {
  const SmallWorld world(93, 40, 12, 6);
  RankerSettings module = closed_form;
  module.network.network = NetworkForm::kModule;
  module.network.module = "relu";
  const auto expected = make_neural(closed_form, world.features());
  const auto ranker = make_neural(module, world.features());
  ExecutionContext execution;
  StageClock clock;
  RoundContext context{execution, clock};
  for (std::uint32_t round = 1; round <= kCourseRounds; ++round) {
    if (play_round(*expected, context, world, round) != play_round(*ranker, context, world, round))
      return round;
  }
  return kCourseRounds + 1;
}

// Both round differently, so that they part where less than rounding decides an order: not in the rounds of
// these. With the diagonal they do in round 172 (ntk), with an ensemble in round 87 (standard), and in ntk
// with three layers or several members at once, since all scores are 0 at first in exact arithmetic.
TEST(ModuleCourseTest, ReluPlaysTheRoundsOfTheClosedForm) {
  for (const char* name : {"dual", "growth"}) {
    EXPECT_GT(first_other_list(neural_settings(name)), kCourseRounds) << name;
  }
  for (const char* name : {"dual", "diagonal", "three_layers", "growth"}) {
    RankerSettings settings = neural_settings(name);
    settings.network.parameterisation = Parameterisation::kStandard;
    EXPECT_GT(first_other_list(settings), kCourseRounds) << name;
  }
}

}  // namespace
}  // namespace olrank
