#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_trainer.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/work.h"
#include "tests/support/expected_warnings.h"

// The emulated device enforces a GPU's rules for memory, streams and recordings.
namespace olrank::emulated {
namespace {

using emulation::Schedule;

void store_kernel(const Grid& /*grid*/, int value, int* place) {
  if (threadIdx.x == 0) *place = value;
}

/// place[1] = 10 place[0] + digit.
void append_kernel(const Grid& /*grid*/, int digit, int* place) {
  if (threadIdx.x == 0) *place = 10 * *place + digit;
}

void increment_kernel(const Grid& /*grid*/, float* place) {
  if (threadIdx.x == 0) *place += 1.0F;
}

class EmulatedDeviceTest : public testing::TestWithParam<Schedule> {
 protected:
  void SetUp() override {
    emulation::forget_everything();
    emulation::machine.schedule = GetParam();
  }
  bool at_once() const { return GetParam() == Schedule::kForward; }
  bool late() const { return GetParam() == Schedule::kBackward; }

  void store(Stream stream, int value) {
    launch(kernel<store_kernel, 32>, {1}, 0, stream, value, place_.data());
  }
  void append(Stream stream, int digit) {
    launch(kernel<append_kernel, 32>, {1}, 0, stream, digit, place_.data());
  }
  int found() { return place_.to_host()[0]; }

  DeviceArray<int> place_{1};
  OwnedStream a_;
  OwnedStream b_;
};

TEST_P(EmulatedDeviceTest, OnlyEventsOrderStreams) {
  const auto play = [&](bool with_event) {
    Event stored;
    store(a_.get(), 0);
    append(a_.get(), 1);
    stored.record(a_.get());
    append(a_.get(), 2);  // after the event, unordered with the other stream
    if (with_event) stored.hold(b_.get());
    b_.wait();
    store(b_.get(), 30);
    b_.wait();
    a_.wait();
    return found();
  };
  const int ordered = play(true);
  EXPECT_TRUE(ordered == 30 || ordered == 302) << ordered;
  if (late()) {
    EXPECT_EQ(play(false), 12);
  }
}

TEST_P(EmulatedDeviceTest, ARecordingRejectsWaitsAndAllocations) {
  const auto refused = [&](const std::function<void()>& work) {
    EXPECT_THROW(Graph(a_.get(), [&] { work(); }), std::logic_error);
    store(a_.get(), 1);  // works as before
    a_.wait();
    EXPECT_EQ(found(), 1);
  };
  refused([&] { a_.wait(); });
  refused([&] { b_.wait(); });
  refused([&] { static_cast<void>(b_.idle()); });
  refused([&] { static_cast<void>(DeviceArray<int>(1)); });
  refused([&] { static_cast<void>(PinnedBytes(1)); });
  refused([&] { store(nullptr, 2); });
  refused([&] { static_cast<void>(place_.to_host()); });
}

TEST_P(EmulatedDeviceTest, OnlyWhatWasWrittenIsCopiedToTheHost) {
  DeviceArray<float> numbers(4);
  PinnedBytes here(4 * sizeof(float));
  const auto copy = [&](std::int64_t first, std::int64_t count) {
    copy_bytes(a_.get(), here.data(), numbers.data() + first,
               static_cast<std::size_t>(count) * sizeof(float));
    a_.wait();
  };
  fill_bytes(a_.get(), numbers.data(), 0, 2 * sizeof(float));
  EXPECT_NO_THROW(copy(0, 2));
  EXPECT_THROW(copy(1, 2), std::logic_error);
  EXPECT_THROW(numbers.to_host(), std::logic_error);
  std::vector<float> found(1);
  EXPECT_NO_THROW(copy_to_host(numbers.data() + 1, std::span(found)));
  EXPECT_THROW(copy_to_host(numbers.data() + 2, std::span(found)), std::logic_error);
  launch(kernel<increment_kernel, 32>, {1}, 0, a_.get(),
         numbers.data() + 3);  // computed from such a number
  EXPECT_THROW(copy(3, 1), std::logic_error);
  DeviceArray<float> other(4);
  EXPECT_NO_THROW(copy_bytes(a_.get(), other.data(), numbers.data(), 4 * sizeof(float)));
  a_.wait();
}

/// Each block continues where the previous one ended, which no GPU guarantees.
void in_a_row_kernel(const Grid& grid, int* numbers) {
  if (threadIdx.x == 0) numbers[grid.block.x + 1] = numbers[grid.block.x] + 1;
}

TEST_P(EmulatedDeviceTest, DetectsDependenciesBetweenBlocks) {
  DeviceArray<int> numbers(65);
  fill_bytes(a_.get(), numbers.data(), 0, 65 * sizeof(int));
  launch(kernel<in_a_row_kernel, 32>, {64}, 0, a_.get(), numbers.data());
  a_.wait();
  EXPECT_EQ(numbers.to_host()[64] == 64, at_once());
}

TEST_P(EmulatedDeviceTest, WorkThatCannotBeRecordedRunsAsItIsUntilItCan) {
  const ExpectedWarnings warnings;
  RecordedWork work;
  const auto two_digits = [&] {
    append(a_.get(), 1);
    append(a_.get(), 2);
  };
  store(a_.get(), 0);
  emulation::machine.recordings_to_fail = 2;
  std::vector<bool> recorded;
  for (int i = 0; i < 4; ++i) {
    recorded.push_back(work.record(a_.get(), two_digits));
    work.start(a_.get(), two_digits);
  }
  a_.wait();
  EXPECT_EQ(found(), 12121212);
  EXPECT_EQ(recorded, (std::vector<bool>{false, false, true, true}));
}

/// Grows to `sizes` one after another and writes each new last number; returns the array.
MappedArray<double> grown(Stream stream, const std::vector<std::int64_t>& sizes) {
  MappedArray<double> array;
  std::int64_t kept = 0;
  for (const std::int64_t size : sizes) {
    array.reserve(stream, size, kept);
    const auto number = static_cast<double>(size);
    PinnedBytes here(sizeof number);
    std::memcpy(here.data(), &number, sizeof number);
    copy_bytes(stream, array.data() + size - 1, here.data(), sizeof number);
    OwnedStream::wait_for(stream);
    kept = size;
  }
  return array;
}

// Freeing memory waits for the whole device, for which other trials work.
TEST_P(EmulatedDeviceTest, GrowingWaitsForNothing) {
  GrowingArray<int> array;
  array.reserve(a_.get(), 4);
  store(b_.get(), 7);
  array.reserve(a_.get(), 8, 4);
  EXPECT_EQ(array.bytes(), (4 + 8) * std::int64_t{sizeof(int)});
  if (late()) {
    EXPECT_FALSE(emulation::passed(emulation::latest(b_.get())));
  }
  b_.wait();
  EXPECT_EQ(found(), 7);
}

TEST_P(EmulatedDeviceTest, MappedArraysGrowInPlaceByWhatIsUsedAndKeepTheirNumbers) {
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(double));
  const std::vector<std::int64_t> sizes{1, 600, 601, 70'000, 90'000};
  for (const bool maps : {true, false}) {
    emulation::machine.maps_memory = maps;
    MappedArray<double> array = grown(a_.get(), sizes);
    EXPECT_EQ(array.moves_to_hold(std::int64_t{1} << 40), !maps);
    std::vector<double> found(90'000);
    copy_to_host(array.data(), std::span(found));
    std::vector<double> expected(90'000);
    for (const std::int64_t size : sizes) expected[size - 1] = static_cast<double>(size);
    EXPECT_EQ(found, expected);
    array = grown(a_.get(), {1});
    const double* first = array.data();
    for (const std::int64_t size : sizes) {
      if (!maps) break;
      array.reserve(a_.get(), size, size);
      EXPECT_EQ(array.data(), first);
      EXPECT_GE(array.bytes(), size * kNumber);
      EXPECT_LT(array.bytes(), size * kNumber + AddressRange::kChunk);
    }
    emulation::machine.maps_memory = true;
  }
}

TEST_P(EmulatedDeviceTest, UnmappingWaitsForTheStream) {
  DeviceArray<double> copy(1);
  {
    MappedArray<double> array = grown(a_.get(), {1});
    array.reserve(a_.get(), 2, 1);
    copy_bytes(a_.get(), copy.data(), array.data(), sizeof(double));
  }
  EXPECT_EQ(copy.to_host()[0], 1.0);
}

INSTANTIATE_TEST_SUITE_P(Schedules, EmulatedDeviceTest, testing::ValuesIn(emulation::kSchedules));

TEST(EmulatedDeviceDeathTest, DetectsWritesBeyondAnArray) {
  emulation::forget_everything();
  emulation::machine.schedule = Schedule::kBackward;
  const auto write_behind = [] {
    const DeviceArray<int> there(3);
    const OwnedStream stream;
    launch(kernel<store_kernel, 32>, {1}, 0, stream.get(), 1, const_cast<int*>(there.data()) + 3);
  };
  EXPECT_DEATH(write_behind(), "wrote outside the bounds of an array|use-after-poison");
}

}  // namespace
}  // namespace olrank::emulated
