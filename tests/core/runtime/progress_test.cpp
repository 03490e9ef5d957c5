#include "core/runtime/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace olrank {
namespace {

/// A manual clock, and the text that was written.
struct Stage {
  std::chrono::steady_clock::time_point now{};
  std::string written;

  Progress::Output output(ProgressStyle style, int columns = 80) {
    return {.style = style,
            .columns = columns,
            .write = [this](std::string_view text) { written += text; },
            .now = [this] { return now; },
            .line_interval = 5.0};
  }
  void pass(double seconds) {
    now += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
  }
};

TEST(ProgressTest, FormatsDurations) {
  EXPECT_EQ(readable_duration(0.4), "0s");
  EXPECT_EQ(readable_duration(61), "1m01s");
  EXPECT_EQ(readable_duration(3725), "1h02m");
  EXPECT_EQ(readable_duration(-1), "?");
  EXPECT_EQ(readable_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(readable_duration(std::nan("")), "?");
}

TEST(ProgressTest, BarRedrawsAtMostFiveTimesASecond) {
  Stage stage;
  Progress progress("trials", 100, "rounds", stage.output(ProgressStyle::kBar));
  for (int i = 0; i < 100; ++i) {
    stage.pass(0.01);
    progress.advance();
  }
  EXPECT_LE(std::count(stage.written.begin(), stage.written.end(), '\r'), 5);
  progress.finish();
  EXPECT_NE(stage.written.find("100% 100 rounds/s, took 1s"), std::string::npos) << stage.written;
  EXPECT_EQ(stage.written.back(), '\n');
}

TEST(ProgressTest, LinesShowRateAndTimeLeft) {
  Stage stage;
  Progress progress("trials", 100, "rounds", stage.output(ProgressStyle::kLines));
  stage.pass(6);
  progress.advance(25);
  EXPECT_EQ(stage.written, "trials: 25/100 rounds (25%), 4.17 rounds/s, 18s left\n");
}

TEST(ProgressTest, EarlierWorkDoesNotCountTowardsTheRate) {
  Stage stage;
  Progress progress("trials", 100, "rounds", stage.output(ProgressStyle::kLines));
  progress.already_done(50);
  stage.pass(10);
  progress.advance(10);
  EXPECT_EQ(stage.written, "trials: 60/100 rounds (60%), 1 rounds/s, 40s left\n");
}

TEST(ProgressTest, FitsNarrowTerminals) {
  Stage stage;
  Progress progress("a rather long label", 10, "rounds", stage.output(ProgressStyle::kBar, 20));
  stage.pass(1);
  progress.advance(5);
  // Between the erase sequence and the end of the line: at most 19 columns.
  const std::string shown = stage.written.substr(stage.written.find("\x1b[K") + 3);
  EXPECT_LE(shown.size(), 19U);
}

TEST(ProgressTest, SilentStyleWritesNothing) {
  Stage stage;
  {
    Progress progress("trials", 10, "rounds", stage.output(ProgressStyle::kSilent));
    stage.pass(100);
    progress.advance(10);
  }
  EXPECT_EQ(stage.written, "");
}

}  // namespace
}  // namespace olrank
