#include "report/dashboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

namespace olrank {
namespace {

DashboardState half_way() {
  DashboardState state;
  state.name = "runs/x";
  state.finished = 1;
  state.unfinished = 1;
  state.expected = 4;
  state.rounds = 1500;
  state.expected_rounds = 4000;
  state.peak_memory_bytes = 250'000'000;
  state.rankers = {{"pairrank", 1, 2, {0.1, 0.2, 0.3, 0.4}, 1234.4}, {"pdgd", 0, 2, {}, std::nan("")}};
  return state;
}

/// The text's width on a terminal: characters, not bytes.
std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80 ? 1 : 0;
  return columns;
}

TEST(Dashboard, ShowsProgress) {
  const std::string text = dashboard_text(half_way(), 100.0, 80);
  for (const char* words :
       {"runs/x", " 38 %", "1 of 4 trials finished, 1 in progress, ETA 25s, 100 rounds/s",
        "peak process memory 250.0 MB", "1/2", "0.4000", "1234/s"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(Dashboard, ShowsAnUnknownRateAsQuestionMarks) {
  EXPECT_NE(dashboard_text(half_way(), 0.0, 80).find("ETA ?, ? rounds/s"), std::string::npos);
}

TEST(Dashboard, FitsTheTerminal) {
  DashboardState state = half_way();
  state.rankers[0].name = std::string(90, 'x');
  for (const int columns : {48, 80, 133}) {
    std::istringstream lines(dashboard_text(state, 12.0, columns));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(columns_of(line), static_cast<std::size_t>(columns)) << line;
  }
}

TEST(Sparkline, ClimbsFromLowToHigh) {
  EXPECT_EQ(sparkline({0.0, 0.5, 1.0}, 0.0, 1.0, 3), "▁▅█");
  EXPECT_EQ(sparkline({0.3}, 0.3, 0.3, 2), "▅▅");
  EXPECT_EQ(sparkline({}, 0.0, 1.0, 5), "");
}

}  // namespace
}  // namespace olrank
