#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "tests/support/cases.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"

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

/// Returns what `log` writes to stderr in a form.
template <class Log>
std::string written(LogForm form, const Log& log) {
  const LogSink before = set_log_sink({});
  set_log_form(form);
  testing::internal::CaptureStderr();
  log();
  set_log_form(LogForm::kText);
  set_log_sink(before);
  return testing::internal::GetCapturedStderr();
}

TEST(LogOutput, WritesLinesAndEventsAsJson) {
  std::istringstream lines(written(LogForm::kJson, [] {
    log_info("a \"quoted\" line");
    log_warning("careful");
    log_event("finished", {{"seconds", 1.5}});
    log_error("It failed.", 1);
  }));
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

TEST(LogOutput, AStatusLineStaysBelowOtherLinesAndEventsAreNotText) {
  EXPECT_EQ(written(LogForm::kText,
                    [] {
                      show_status("[##--] 50%");
                      log_info("a line");
                      log_event("finished", {{"seconds", 1.5}});
                      show_status("[###-] 75%");
                      end_status();
                    }),
            "\r\x1b[K[##--] 50%\r\x1b[Ka line\n[##--] 50%\r\x1b[K[###-] 75%\n");
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
  EXPECT_THROW(ThreadPool(0), InvalidArgument);
}

TEST(ThreadPoolTest, ThrowsTheLowestFailureAfterAllHaveRun) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> runs = 0;
    const auto fail_often = [&](std::int64_t task, int) {
      ++runs;
      if (task % 10 == 7) throw std::runtime_error(std::to_string(task));
    };
    EXPECT_EQ(message_of<std::runtime_error>([&] { pool.run(100, fail_often); }), "7");
    EXPECT_EQ(runs, 100);
    pool.run(1, [&](std::int64_t, int) { runs = 0; });  // still usable
    EXPECT_EQ(runs, 0);
  }
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

TEST(ErrorTest, MessagesStartWithPosition) {
  EXPECT_STREQ(DataError("a.txt", 3, 7, "A colon is missing.").what(), "a.txt:3:7: A colon is missing.");
  EXPECT_STREQ(DataError("a.txt", 3, 0, "A colon is missing.").what(), "a.txt:3: A colon is missing.");
  EXPECT_STREQ(DataError("a.txt", 0, 0, "It is empty.").what(), "a.txt: It is empty.");
}

TEST(ErrorTest, ExitCodesDistinguishUsageErrorsFromFailures) {
  EXPECT_EQ(exit_code_of(InvalidArgument("x")), ExitCode::kWrongUsage);
  EXPECT_EQ(exit_code_of(NotBuiltWithCuda("--device cuda")), ExitCode::kWrongUsage);
  const DataError data("f", 1, 1, "x");
  const NumericError numeric("x");
  const CudaError cuda("x");
  const IoError io("write", "f", ENOSPC);
  const std::runtime_error other("x");
  for (const std::exception* failure :
       std::vector<const std::exception*>{&data, &numeric, &cuda, &io, &other})
    EXPECT_EQ(exit_code_of(*failure), ExitCode::kFailed);
}

TEST(ErrorTest, IoErrorsSuggestAWayOut) {
  for (const auto& [doing, code, message] : std::vector<std::tuple<std::string, int, std::string>>{
           {"write", ENOSPC, "No space left on device. Free some space or choose another folder."},
           {"read", EACCES, "Permission denied. Make it readable for you (chmod), or run as its owner."},
           {"write", EACCES,
            "Permission denied. Choose a folder with write permission, or change its permissions."}})
    EXPECT_EQ(IoError(doing, "/x/y", code).what(), "Cannot " + doing + " '/x/y': " + message);
}

TEST(DeviceTest, ParsesDeviceNames) {
  EXPECT_EQ(parse_device("auto").kind, DeviceKind::kAuto);
  EXPECT_EQ(parse_device("cpu").kind, DeviceKind::kCpu);
  EXPECT_TRUE(parse_device("cuda:all").on_gpus());
  EXPECT_TRUE(parse_device("cuda:all").every_gpu);
  // Whether there are so many is for the driver to say.
  for (const auto& [text, gpus] : std::vector<std::pair<std::string, std::vector<GpuRange>>>{
           {"cuda", {{0, 0}}},
           {"cuda:7", {{7, 7}}},
           {"cuda:0-3", {{0, 3}}},
           {"cuda:1,3", {{1, 1}, {3, 3}}},
           {"cuda:6,0-1,3-3", {{0, 1}, {3, 3}, {6, 6}}},
           {"cuda:0-2000000000", {{0, 2'000'000'000}}}}) {
    EXPECT_TRUE(parse_device(text).on_gpus()) << text;
    EXPECT_FALSE(parse_device(text).every_gpu) << text;
    EXPECT_EQ(parse_device(text).gpus, gpus) << text;
  }
}

TEST(DeviceTest, NamesGpusInTheShortestWay) {
  const auto name = [](std::vector<int> gpus) { return device_name(gpus); };
  EXPECT_EQ(name({}), "cpu");
  EXPECT_EQ(name({2}), "cuda:2");
  EXPECT_EQ(name({0, 1}), "cuda:0-1");
  EXPECT_EQ(name({0, 1, 2, 5, 7, 8}), "cuda:0-2,5,7-8");
}

TEST(DeviceTest, RefusesOtherNames) {
  expect_cases("core/refusals.txt", "devices", [](const std::string& text) {
    return message_of<InvalidArgument>([&] { parse_device(text); });
  });
}

TEST(StageClockTest, SumsByName) {
  StageClock clock;
  clock.add("score", 1.5);
  clock.add("train", 2.0);
  clock.add("score", 0.5);
  EXPECT_EQ(clock.seconds("score"), 2.0);
  EXPECT_EQ(clock.seconds("train"), 2.0);
  EXPECT_EQ(clock.seconds("never"), 0.0);
  EXPECT_EQ(clock.total(), 4.0);
  ASSERT_EQ(clock.stages().size(), 2U);
  EXPECT_EQ(clock.stages()[0].name, "score");
}

TEST(StageClockTest, MeasuresScopesWhileStagesAreAdded) {
  StageClock clock;
  {
    const auto outer = clock.measure("outer");
    const auto inner = clock.measure("inner");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(clock.seconds("outer"), 0.005);
  EXPECT_GE(clock.seconds("outer"), clock.seconds("inner"));
}

TEST(UtcTime, WritesMillisecondsAndReadsThem) {
  for (const auto& [time, text] :
       std::vector<std::pair<std::int64_t, std::string>>{{0, "1970-01-01T00:00:00.000Z"},
                                                         {1764158400007, "2025-11-26T12:00:00.007Z"},
                                                         {951782400000, "2000-02-29T00:00:00.000Z"},
                                                         {4102444800000, "2100-01-01T00:00:00.000Z"},
                                                         {-1, "1969-12-31T23:59:59.999Z"},
                                                         {-86400001, "1969-12-30T23:59:59.999Z"}}) {
    EXPECT_EQ(utc_text(time), text);
    EXPECT_EQ(utc_milliseconds(text), time);
  }
  expect_cases("core/refusals.txt", "times", [](const std::string& text) {
    const auto time = utc_milliseconds(text);
    return time ? std::to_string(*time) : "refused";
  });
}

TEST(ScratchTest, ReturnsDistinctAlignedMemory) {
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const auto a = scratch.take<double>(100);
  const auto b = scratch.take<float>(7);
  const auto empty = scratch.take<double>(0);
  EXPECT_EQ(empty.size(), 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % Scratch::kAlignment, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % Scratch::kAlignment, 0U);
  EXPECT_GE(reinterpret_cast<const char*>(b.data()), reinterpret_cast<const char*>(a.data() + a.size()));
}

TEST(ScratchTest, StopsGrowingAndKeepsMemoryOfOuterFrames) {
  Scratch scratch;
  std::size_t after_first = 0;
  for (int repeat = 0; repeat < 10; ++repeat) {
    const Scratch::Frame outer(scratch);
    const auto kept = scratch.take<int>(1000);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int>(i);
    {
      const Scratch::Frame inner(scratch);
      for (double& value : scratch.take<double>(1 << 20)) value = -1.0;
    }
    for (double& value : scratch.take<double>(1 << 19)) value = -2.0;
    for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i], static_cast<int>(i));
    if (repeat == 0) after_first = scratch.capacity();
  }
  EXPECT_EQ(scratch.capacity(), after_first);
}

}  // namespace
}  // namespace olrank
