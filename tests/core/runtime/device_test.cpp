#include "core/runtime/device.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

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

}  // namespace
}  // namespace olrank
