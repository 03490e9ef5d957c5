#include "jobs/run_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/text/text_table.h"

namespace olrank {
namespace {

/// A manual clock, and what was shown.
struct Stage {
  RunProgress::Clock::time_point now{};
  std::vector<std::string> status;
  std::vector<std::string> lines;

  RunProgress::Output output(ProgressStyle style, int columns = 80) {
    return {.style = style,
            .columns = columns,
            .status = [this](std::string_view text) { status.emplace_back(text); },
            .line = [this](std::string_view text) { lines.emplace_back(text); },
            .now = [this] { return now; }};
  }
  void pass(double seconds) {
    now += std::chrono::duration_cast<RunProgress::Clock::duration>(std::chrono::duration<double>(seconds));
  }
};

std::vector<TrialIdentity> two_trials() {
  return {{"olranknet-full", "perfect", 1, 1}, {"olranknet-full", "perfect", 1, 2}};
}

CurvePoint point_at(std::int64_t round) {
  CurvePoint point;
  point.round = round;
  point.offline_ndcg = 0.4321;
  return point;
}

/// Half of the first trial, at a second a round.
void play_half(Stage& stage, RunProgress& progress) {
  progress.started(0, 0, 0.0);
  for (int round = 1; round <= 50; ++round) {
    stage.pass(1.0);
    if (round == 1) progress.evaluated(0, point_at(0));
    progress.played(0, round);
  }
}

TEST(RunProgress, LinesNameTheTrialItsFigureAndTheTimeLeft) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kLines));
  play_half(stage, progress);
  ASSERT_EQ(stage.lines.size(), 10U);  // one in five seconds
  EXPECT_EQ(stage.lines.back(),
            "25%, 0 of 2 trials finished, 2m30s left; seed 1, round 0 of 100: ndcg@10 0.4321");
}

TEST(RunProgress, ABarKeepsToItsColumns) {
  for (const int columns : {10, 30, 48, 80, 200}) {
    Stage stage;
    RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kBar, columns));
    play_half(stage, progress);
    ASSERT_EQ(stage.status.size(), 50U);
    for (const std::string& text : stage.status) EXPECT_LT(columns_of(text), columns) << text;
  }
}

TEST(RunProgress, ABarIsRedrawnAtMostFiveTimesASecond) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kBar));
  progress.started(0, 0, 0.0);
  for (int round = 1; round <= 100; ++round) {
    stage.pass(0.01);
    progress.played(0, round);
  }
  EXPECT_LE(stage.status.size(), 5U);
  EXPECT_EQ(stage.status.back().find("[####-----] 50%"), 0U) << stage.status.back();
}

TEST(RunProgress, SaysHowLongItTook) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kLines));
  progress.finished_before(1);
  play_half(stage, progress);
  for (int round = 51; round <= 100; ++round) {
    stage.pass(1.0);
    progress.played(0, round);
  }
  progress.finished(0, 100.0);
  progress.end(0);
  EXPECT_EQ(stage.lines.back(), "100%, 2 of 2 trials finished, took 1m40s");
}

TEST(RunProgress, SilentStyleShowsNothing) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kSilent));
  play_half(stage, progress);
  progress.end(0);
  EXPECT_TRUE(stage.lines.empty());
  EXPECT_TRUE(stage.status.empty());
}

}  // namespace
}  // namespace olrank
