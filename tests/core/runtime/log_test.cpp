#include "core/runtime/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/expected_warnings.h"

namespace olrank {
namespace {

TEST(LogTest, VerbosityFiltersLevels) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const auto log_all = [] {
    log_detail("detail {}", 1);
    log_info("info {}", 2);
    log_warning("warning {}", 3);
  };
  set_verbosity(Verbosity::kQuiet);
  log_all();
  EXPECT_EQ(lines, (std::vector<std::string>{"warning 3"}));
  set_verbosity(Verbosity::kNormal);
  log_all();
  EXPECT_EQ(lines.size(), 3U);
  set_verbosity(Verbosity::kVerbose);
  log_all();
  EXPECT_EQ(lines.size(), 6U);
  set_verbosity(Verbosity::kNormal);
  set_log_sink(before);
}

TEST(LogTest, ExpectedWarningsAreCollected) {
  const ExpectedWarnings warnings;
  log_warning("{} features are constant", 3);
  EXPECT_EQ(warnings.messages(), (std::vector<std::string>{"3 features are constant"}));
}

TEST(LogOutput, WritesLinesAndEventsAsJson) {
  const LogSink before = set_log_sink({});
  set_log_form(LogForm::kJson);
  testing::internal::CaptureStderr();
  log_info("a \"quoted\" line");
  log_warning("careful");
  log_event("finished", {{"seconds", 1.5}});
  log_error("It failed.", 1);
  std::istringstream lines(testing::internal::GetCapturedStderr());
  set_log_form(LogForm::kText);
  set_log_sink(before);
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 4U);
  EXPECT_EQ(objects[0].at("event"), "info");
  EXPECT_EQ(objects[0].at("message"), "a \"quoted\" line");
  EXPECT_EQ(objects[1].at("event"), "warning");
  EXPECT_EQ(objects[2].at("seconds"), 1.5);
  EXPECT_EQ(objects[3].at("exit_code"), 1);
  const std::string time = objects[0].at("time");
  EXPECT_EQ(time.size(), std::string("2026-01-31T23:59:59.123Z").size()) << time;
}

TEST(LogOutput, EventsAreNotText) {
  const LogSink before = set_log_sink({});
  testing::internal::CaptureStderr();
  log_event("finished", {{"seconds", 1.5}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  set_log_sink(before);
}

TEST(LogOutput, AStatusLineStaysBelowOtherLines) {
  const LogSink before = set_log_sink({});
  testing::internal::CaptureStderr();
  show_status("[##--] 50%");
  log_info("a line");
  show_status("[###-] 75%");
  end_status();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\r\x1b[K[##--] 50%\r\x1b[Ka line\n[##--] 50%\r\x1b[K[###-] 75%\n");
  set_log_sink(before);
}

TEST(LogOutput, MutedThreadsSayNothing) {
  const ExpectedWarnings warnings;
  {
    const MutedLog muted;
    log_warning("from a calibration");
  }
  log_warning("from a trial");
  EXPECT_EQ(warnings.messages(), (std::vector<std::string>{"from a trial"}));
}

}  // namespace
}  // namespace olrank
