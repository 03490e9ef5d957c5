#include "core/runtime/device.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace olrank {
namespace {

TEST(DeviceTest, ParsesDeviceNames) {
  EXPECT_TRUE(parse_device("auto").automatic);
  EXPECT_EQ(parse_device("cpu").device, (Device{DeviceKind::kCpu, 0}));
  EXPECT_EQ(parse_device("cuda").device, (Device{DeviceKind::kCuda, 0}));
  EXPECT_EQ(parse_device("cuda:7").device, (Device{DeviceKind::kCuda, 7}));
  EXPECT_EQ(parse_device("cuda:7").device.name(), "cuda:7");
}

TEST(DeviceTest, RefusesOtherNames) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1 ", "CPU", "cuda:99999999999"}) {
    EXPECT_THROW(parse_device(text), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace olrank
