#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "tests/support/expected_warnings.h"

namespace olrank {
namespace {

TEST(InterruptTest, RecordsTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptGuard guard;
    EXPECT_EQ(InterruptGuard::requested(), 0);
    std::raise(signal);
    EXPECT_EQ(InterruptGuard::requested(), signal);
  }
  EXPECT_EQ(InterruptGuard::exit_code(SIGINT), 130);
  EXPECT_EQ(InterruptGuard::exit_code(SIGTERM), 143);
  EXPECT_EQ(InterruptGuard::exit_code(SIGHUP), 129);
}

TEST(InterruptTest, LeavesAnIgnoredHangUpIgnored) {
  std::signal(SIGHUP, SIG_IGN);  // as nohup does
  {
    const InterruptGuard guard;
    std::raise(SIGHUP);
    EXPECT_EQ(InterruptGuard::requested(), 0);
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(InterruptTest, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptTest, RestoresEarlierHandlers) {
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  { const InterruptGuard guard; }
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

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

TEST(ProgressTest, FormatsDurations) {
  EXPECT_EQ(readable_duration(0.4), "0s");
  EXPECT_EQ(readable_duration(61), "1m01s");
  EXPECT_EQ(readable_duration(3725), "1h02m");
  EXPECT_EQ(readable_duration(-1), "?");
  EXPECT_EQ(readable_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(readable_duration(std::nan("")), "?");
}

TEST(ThreadPoolTest, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const std::int64_t tasks : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      pool.run(tasks, [&](std::int64_t task, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        ++runs[task];
      });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, ThrowsTheLowestFailureAfterAllHaveRun) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> runs = 0;
    try {
      pool.run(100, [&](std::int64_t task, int) {
        ++runs;
        if (task % 10 == 7) throw std::runtime_error(std::to_string(task));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_EQ(runs, 100);
    pool.run(1, [&](std::int64_t, int) { runs = 0; });  // still usable
    EXPECT_EQ(runs, 0);
  }
}

TEST(ThreadPoolTest, RefusesZeroThreads) {
  EXPECT_THROW(ThreadPool(0), InvalidArgument);
}

TEST(ExecutionContextTest, BlocksDoNotDependOnThreads) {
  std::vector<std::vector<double>> sums;
  for (const int threads : {1, 2, 4}) {
    ExecutionContext context(threads);
    std::vector<double> partial((1000 + 63) / 64);
    context.for_blocks(1000, 64, [&](std::int64_t begin, std::int64_t end, int worker) {
      const Scratch::Frame frame(context.scratch(worker));
      const auto values = context.scratch(worker).take<double>(end - begin);
      for (std::int64_t i = begin; i < end; ++i) values[i - begin] = 1.0 / (1.0 + i);
      partial[begin / 64] = std::accumulate(values.begin(), values.end(), 0.0);
    });
    sums.push_back(partial);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(sums[0].size(), 16U);
}

TEST(ExecutionContextTest, ReportsCoresAndMemory) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_GT(available_memory(), 1 << 20);
}

TEST(ErrorTest, MessagesStartWithPosition) {
  EXPECT_STREQ(DataError("a.txt", 3, 7, "A colon is missing.").what(), "a.txt:3:7: A colon is missing.");
  EXPECT_STREQ(DataError("a.txt", 3, 0, "A colon is missing.").what(), "a.txt:3: A colon is missing.");
  EXPECT_STREQ(DataError("a.txt", 0, 0, "It is empty.").what(), "a.txt: It is empty.");
}

TEST(ErrorTest, ExitCodesDistinguishUsageErrorsFromFailures) {
  EXPECT_EQ(exit_code_of(InvalidArgument("x")), ExitCode::kWrongUsage);
  EXPECT_EQ(exit_code_of(NotBuiltWithCuda("--device cuda")), ExitCode::kWrongUsage);
  EXPECT_EQ(exit_code_of(DataError("f", 1, 1, "x")), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(NumericError("x")), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(CudaError("x")), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(IoError("write", "f", ENOSPC)), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(std::runtime_error("x")), ExitCode::kFailed);
}

TEST(ErrorTest, IoErrorsSuggestAWayOut) {
  const std::string full = IoError("write", "/x/y", ENOSPC).what();
  EXPECT_EQ(full,
            "Cannot write '/x/y': No space left on device. Free some space or choose another folder.");
  EXPECT_STREQ(
      IoError("read", "/x/y", EACCES).what(),
      "Cannot read '/x/y': Permission denied. Make it readable for you (chmod), or run as its owner.");
  EXPECT_STREQ(
      IoError("write", "/x/y", EACCES).what(),
      "Cannot write '/x/y': Permission denied. Choose a folder with write permission, or change its "
      "permissions.");
}

}  // namespace
}  // namespace olrank
