#include "core/runtime/log.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace olrank
