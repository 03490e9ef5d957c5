#include "report/dashboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "core/text/text_table.h"

namespace olrank {
namespace {

DashboardState half_way() {
  DashboardState state;
  state.name = "runs/x";
  state.finished = 1;
  state.unfinished = 1;
  state.expected = 4;
  state.rounds = 1000;
  state.cutoff = 10;
  state.share = 0.375;
  state.seconds_left = 25.0;
  state.peak_memory_bytes = 250'000'000;
  state.users = {
      {"perfect", {{"pairrank", 1, 2, {0.1, 0.2, 0.3, 0.4}, 1234.4}, {"pdgd", 0, 2, {}, std::nan("")}}},
      {"informational", {{"pairrank", 0, 1, {0.15}, 3.0}}}};
  return state;
}

TEST(Dashboard, LabelsWhatItShowsByUser) {
  EXPECT_EQ(dashboard_text(half_way(), 80),
            "runs/x: running, 1 of 4 trials finished, 1 in progress\n"
            "[########################.......................................] 37 %, 25s left\n"
            "peak process memory 250.0 MB\n"
            "\n"
            "perfect: offline NDCG@10 from 0.1000 (▁) to 0.4000 (█)\n"
            "ranker    trials  rounds 0 to 1000      latest  rounds/s\n"
            "pairrank     1/2  ▁▁▁▁▁▁▁▃▃▃▃▃▃▆▆▆▆▆▆█  0.4000      1234\n"
            "pdgd         0/2                             -         -\n"
            "\n"
            "informational: offline NDCG@10 from 0.1500 (▁) to 0.1500 (█)\n"
            "ranker    trials  rounds 0 to 1000      latest  rounds/s\n"
            "pairrank     0/1  ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅  0.1500         3\n");
}

TEST(Dashboard, SaysThatARunWasStopped) {
  DashboardState state = half_way();
  state.activity = DashboardState::Activity::kStopped;
  const std::string text = dashboard_text(state, 100);
  EXPECT_NE(text.find("runs/x: stopped, 1 of 4 trials finished, 1 begun; no process writes to this folder"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("left"), std::string::npos) << text;
}

TEST(Dashboard, FitsTheTerminal) {
  DashboardState state = half_way();
  state.users[0].rankers[0].name = std::string(90, 'x');
  for (const int columns : {48, 80, 133}) {
    for (const auto activity : {DashboardState::Activity::kRunning, DashboardState::Activity::kStopped}) {
      state.activity = activity;
      std::istringstream lines(dashboard_text(state, columns));
      for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
    }
  }
}

TEST(Dashboard, NamesCannotMoveTheCursor) {
  DashboardState state = half_way();
  state.users[0].name = "\x1b[2J";
  EXPECT_EQ(dashboard_text(state, 80).find('\x1b'), std::string::npos);
}

TEST(Sparkline, ClimbsFromLowToHigh) {
  EXPECT_EQ(sparkline({0.0, 0.5, 1.0}, 0.0, 1.0, 3), "▁▅█");
  EXPECT_EQ(sparkline({0.3}, 0.3, 0.3, 2), "▅▅");
  EXPECT_EQ(sparkline({}, 0.0, 1.0, 5), "");
}

}  // namespace
}  // namespace olrank
