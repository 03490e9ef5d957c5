#include "core/online/retraining.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

RetrainingSchedule on_growth(std::int64_t replay_steps = 4) {
  return RetrainingSchedule({.retrain = Retrain::kGrowth, .growth = 0.1, .replay_steps = replay_steps});
}

TEST(RetrainingScheduleTest, EveryRoundTrainsOnTheWholeHistory) {
  RetrainingSchedule schedule({});
  for (const std::int64_t pairs : {1, 199, 200, 100000}) {
    EXPECT_EQ(schedule.extent({pairs, pairs, pairs}), TrainingExtent::kHistory);
    schedule.trained({pairs, pairs, pairs});
  }
}

TEST(RetrainingScheduleTest, AShortHistoryIsTrainedOnInEveryRound) {
  RetrainingSchedule schedule = on_growth();
  for (std::int64_t pairs = 1; pairs < 200; ++pairs) {
    EXPECT_EQ(schedule.extent({pairs, 1, 1}), TrainingExtent::kHistory);
    schedule.trained({pairs, 1, 1});
  }
  EXPECT_EQ(schedule.extent({200, 1, 1}), TrainingExtent::kSample);
}

TEST(RetrainingScheduleTest, ATenthOfNewTermsMakesATrainingDue) {
  RetrainingSchedule schedule = on_growth();
  schedule.trained({1000, 300, 300});
  EXPECT_EQ(schedule.extent({1000, 300, 300}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1050, 329, 329}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1050, 330, 330}), TrainingExtent::kHistory);
  // It stays due until it has taken place.
  EXPECT_EQ(schedule.extent({1090, 340, 340}), TrainingExtent::kHistory);
  schedule.trained({9000, 340, 340, 9000});
  EXPECT_EQ(schedule.extent({9100, 373, 373, 9100}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({9100, 374, 374, 9100}), TrainingExtent::kHistory);
}

TEST(RetrainingScheduleTest, SoDoRepeatedPairs) {
  RetrainingSchedule schedule = on_growth();
  schedule.trained({1000, 300, 300, 1000});
  EXPECT_EQ(schedule.extent({1099, 300, 300, 1099}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1100, 300, 300, 1100}), TrainingExtent::kHistory);
  // Of a limited history that stays as long as it is.
  schedule.trained({1000, 300, 300, 5000});
  EXPECT_EQ(schedule.extent({1000, 300, 300, 5099}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({1000, 300, 300, 5100}), TrainingExtent::kHistory);
}

TEST(RetrainingScheduleTest, NewTermsCountWhereOldOnesAreForgotten) {
  RetrainingSchedule schedule = on_growth();
  schedule.trained({500, 400, 1000});
  EXPECT_EQ(schedule.extent({500, 400, 1039}), TrainingExtent::kSample);
  EXPECT_EQ(schedule.extent({500, 390, 1040}), TrainingExtent::kHistory);
}

TEST(RetrainingScheduleTest, WithoutReplayStepsRoundsWait) {
  RetrainingSchedule schedule = on_growth(0);
  schedule.trained({1000, 300, 300});
  EXPECT_EQ(schedule.extent({1001, 301, 301}), TrainingExtent::kNothing);
  EXPECT_EQ(schedule.extent({1030, 330, 330}), TrainingExtent::kHistory);
}

/// However long the history, its pairs take part in J/growth passes each, within the rounding up to whole
/// rounds.
TEST(RetrainingScheduleTest, TrainingsAreAmortised) {
  RetrainingSchedule schedule = on_growth();
  std::int64_t passes = 0;
  constexpr std::int64_t kPairs = 100000;
  for (std::int64_t pairs = 200; pairs <= kPairs; ++pairs) {
    if (schedule.extent({pairs, pairs, pairs}) != TrainingExtent::kHistory) continue;
    passes += pairs;
    schedule.trained({pairs, pairs, pairs});
  }
  EXPECT_LE(passes, 11 * kPairs);  // 1 + 1/growth
  EXPECT_GE(passes, 9 * kPairs);
}

}  // namespace
}  // namespace olrank
