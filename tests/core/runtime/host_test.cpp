#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <thread>

#include "core/error.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "core/runtime/stage_clock.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(Host, NamesItsProcessorOnOneLine) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_EQ(cpu_model().find('\n'), std::string::npos);
}

TEST(UtcTime, ReadsBackWhatItWrites) {
  const auto now = utc_seconds(utc_now());
  ASSERT_TRUE(now);
  EXPECT_LE(std::abs(*now - static_cast<std::int64_t>(std::time(nullptr))), 2);
  EXPECT_EQ(utc_seconds("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(utc_seconds("2026-01-31T23:59:59Z"), 1769903999);
}

TEST(UtcTime, IsNothingForOtherTexts) {
  for (const char* text : {"", "yesterday", "2026-01-31", "2026-01-31T23:59:59", "2026-01-31T23:59:59Z+1"})
    EXPECT_FALSE(utc_seconds(text)) << text;
}

std::string device_error(const char* text) {
  return message_of([&] { parse_device(text); });
}

TEST(DeviceTest, ParsesDeviceNames) {
  EXPECT_EQ(parse_device("auto").kind, DeviceKind::kAuto);
  EXPECT_EQ(parse_device("cpu").kind, DeviceKind::kCpu);
  for (const char* text : {"cuda", "cuda:7", "cuda:all"}) EXPECT_TRUE(parse_device(text).on_gpus()) << text;
  EXPECT_EQ(parse_device("cuda").gpus, (std::vector<GpuRange>{{0, 0}}));
  EXPECT_EQ(parse_device("cuda:7").gpus, (std::vector<GpuRange>{{7, 7}}));
  EXPECT_TRUE(parse_device("cuda:all").every_gpu);
  EXPECT_FALSE(parse_device("cuda:0").every_gpu);
}

TEST(DeviceTest, ParsesListsOfGpusInAnyOrder) {
  EXPECT_EQ(parse_device("cuda:0-3").gpus, (std::vector<GpuRange>{{0, 3}}));
  EXPECT_EQ(parse_device("cuda:1,3").gpus, (std::vector<GpuRange>{{1, 1}, {3, 3}}));
  EXPECT_EQ(parse_device("cuda:6,0-1,3-3").gpus, (std::vector<GpuRange>{{0, 1}, {3, 3}, {6, 6}}));
  // Whether there are so many is for the driver to say.
  EXPECT_EQ(parse_device("cuda:0-2000000000").gpus, (std::vector<GpuRange>{{0, 2'000'000'000}}));
}

TEST(DeviceTest, NamesGpusInTheShortestWay) {
  const auto name = [](std::vector<int> gpus) { return device_name(gpus); };
  EXPECT_EQ(name({}), "cpu");
  EXPECT_EQ(name({2}), "cuda:2");
  EXPECT_EQ(name({0, 1}), "cuda:0-1");
  EXPECT_EQ(name({0, 1, 2, 5, 7, 8}), "cuda:0-2,5,7-8");
}

TEST(DeviceTest, RefusesOtherNames) {
  for (const char* text : {"",           "gpu",        "cuda:",      "cuda:-1",
                           "cuda:x",     "cuda:1 ",    "CPU",        "cuda:99999999999",
                           "cuda:1,",    "cuda:,1",    "cuda:1,,3",  "cuda:0-",
                           "cuda:0-1-2", "cuda:0-all", "cuda:all,0", "cuda:ALL",
                           "cuda:0..3",  "cuda:0-+3",  "cuda: 1",    "cuda:1;3"}) {
    EXPECT_THROW(parse_device(text), InvalidArgument) << text;
  }
  EXPECT_EQ(device_error("cuda:x"),
            "'cuda:x' is not a device: use auto, cpu, cuda, cuda:N, cuda:all or a list such as cuda:0-3 or "
            "cuda:1,3.");
}

TEST(DeviceTest, RefusesBackwardRangesAndRepetitions) {
  EXPECT_EQ(device_error("cuda:0,3-1"), "The range 3-1 in 'cuda:0,3-1' runs backwards: use 1-3.");
  EXPECT_EQ(device_error("cuda:1,1"), "'cuda:1,1' names cuda:1 twice: name each GPU once.");
  EXPECT_EQ(device_error("cuda:0-3,2"), "'cuda:0-3,2' names cuda:2 twice: name each GPU once.");
  EXPECT_EQ(device_error("cuda:2-5,0-2"), "'cuda:2-5,0-2' names cuda:2 twice: name each GPU once.");
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

TEST(UtcTime, WritesMilliseconds) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(1764158400007), "2025-11-26T12:00:00.007Z");
  EXPECT_EQ(utc_text(951782400000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59.999Z");
}

TEST(UtcTime, ReadsWhatItWrites) {
  for (const std::int64_t time : {0LL, 1LL, 951782399999LL, 1764158400007LL, 4102444800000LL, -86400001LL})
    EXPECT_EQ(utc_milliseconds(utc_text(time)), time);
}

TEST(UtcTime, ReadsFractionsAndOffsets) {
  constexpr std::int64_t kNoon = 1764158400000;
  for (const char* text :
       {"2025-11-26T12:00:00Z", "2025-11-26t12:00:00z", "2025-11-26 12:00:00", "2025-11-26T12:00:00+00:00",
        "2025-11-26T13:30:00+01:30", "2025-11-26T07:00:00-0500", "2025-11-26T12:00:00.0000004Z"})
    EXPECT_EQ(utc_milliseconds(text), kNoon) << text;
  EXPECT_EQ(utc_milliseconds("2025-11-26T12:00:00.1Z"), kNoon + 100);
  EXPECT_EQ(utc_milliseconds("2025-11-26T12:00:00,0129Z"), kNoon + 12);
}

TEST(UtcTime, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2025-11-26", "2025-11-26T12:00", "2025-13-01T00:00:00Z", "2025-02-29T00:00:00Z",
        "2025-11-26T24:00:00Z", "2025-11-26T12:60:00Z", "2025-11-26T12:00:00Zulu", "2025-11-26T12:00:00.Z",
        "2025-11-26T12:00:00+1", "25-11-26T12:00:00Z", "now"})
    EXPECT_FALSE(utc_milliseconds(text)) << text;
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
