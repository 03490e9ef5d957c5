#include "core/online/retraining.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

RetrainingSchedule on_growth(std::int64_t replay_steps = 4) {
  return RetrainingSchedule({.retrain = Retrain::kGrowth, .growth = 0.1, .replay_steps = replay_steps});
}

TEST(RetrainingScheduleTest, EveryRoundTrainsOnTheWholeHistory) {
  RetrainingSchedule schedule({});
  for (const std::int64_t pairs : {1, 199}) {
    EXPECT_EQ(schedule.extent({pairs, pairs}), TrainingExtent::kHistory);
    schedule.trained({pairs, pairs});
  }
}

TEST(RetrainingScheduleTest, AShortHistoryIsTrainedOnInEveryRound) {
  RetrainingSchedule schedule = on_growth();
  for (std::int64_t pairs = 1; pairs < 200; ++pairs) {
    EXPECT_EQ(schedule.extent({pairs, 1}), TrainingExtent::kHistory);
    schedule.trained({pairs, 1});
  }
  EXPECT_EQ(schedule.extent({200, 1}), TrainingExtent::kSample);
}

TEST(RetrainingScheduleTest, ATenthOfNewTermsMakesATrainingDue) {
  RetrainingSchedule schedule = on_growth();
  schedule.trained({1000, 300});
  EXPECT_EQ(schedule.extent({1000, 300}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1050, 329}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1050, 330}), TrainingExtent::kHistory);
  // So do repeated pairs.
  EXPECT_EQ(schedule.extent({1099, 300}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1100, 300}), TrainingExtent::kHistory);
  // It stays due until it has taken place.
  EXPECT_EQ(schedule.extent({1090, 340}), TrainingExtent::kHistory);
  schedule.trained({9000, 340});
  EXPECT_EQ(schedule.extent({9100, 373}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({9100, 374}), TrainingExtent::kHistory);
}

TEST(RetrainingScheduleTest, WithoutReplayStepsRoundsWait) {
  RetrainingSchedule schedule = on_growth(0);
  schedule.trained({1000, 300});
  EXPECT_EQ(schedule.extent({1001, 301}), TrainingExtent::kNothing);
  EXPECT_EQ(schedule.extent({1030, 330}), TrainingExtent::kHistory);
}

/// However long the history, its pairs take part in J/growth passes each, within the rounding up to whole
/// rounds.
TEST(RetrainingScheduleTest, TrainingsAreAmortised) {
  RetrainingSchedule schedule = on_growth();
  std::int64_t passes = 0;
  constexpr std::int64_t kPairs = 100000;
  for (std::int64_t pairs = 200; pairs <= kPairs; ++pairs) {
    if (schedule.extent({pairs, pairs}) != TrainingExtent::kHistory) continue;
    passes += pairs;
    schedule.trained({pairs, pairs});
  }
  EXPECT_LE(passes, 11 * kPairs);  // 1 + 1/growth
  EXPECT_GE(passes, 9 * kPairs);
}

}  // namespace
}  // namespace olrank
