#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/error.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/recorded_work.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/launch.cuh"
#include "cuda/runtime/work.h"
#include "tests/support/expected_warnings.h"

// The emulated device enforces a GPU's rules for memory, streams and recordings.
namespace olrank::emulated {
namespace {

using emulation::Schedule;

constexpr Schedule kSchedules[] = {Schedule::kForward, Schedule::kBackward, Schedule::kRandom};

void store_kernel(int value, int* place) {
  if (threadIdx.x == 0) *place = value;
}

/// place[1] = 10 place[0] + digit.
void append_kernel(int digit, int* place) {
  if (threadIdx.x == 0) *place = 10 * *place + digit;
}

void count_nan_kernel(const float* three, const double* one, int* count) {
  if (threadIdx.x != 0) return;
  *count = std::isnan(*one) ? 1 : 0;
  for (int i = 0; i < 3; ++i) *count += std::isnan(three[i]) ? 1 : 0;
}

void increment_kernel(float* place) {
  if (threadIdx.x == 0) *place += 1.0F;
}

class EmulatedDeviceTest : public testing::TestWithParam<Schedule> {
 protected:
  void SetUp() override {
    emulation::forget_everything();
    emulation::set_schedule(GetParam());
  }
  bool at_once() const { return GetParam() == Schedule::kForward; }
  bool late() const { return GetParam() == Schedule::kBackward; }

  void store(Stream stream, int value) { launch(store_kernel, {1}, {32}, 0, stream, value, place_.data()); }
  void append(Stream stream, int digit) {
    launch(append_kernel, {1}, {32}, 0, stream, digit, place_.data());
  }
  int found() { return place_.to_host()[0]; }

  DeviceArray<int> place_{1};
  OwnedStream a_;
  OwnedStream b_;
};

TEST_P(EmulatedDeviceTest, AStreamKeepsItsOrder) {
  store(a_.get(), 0);
  for (int digit = 1; digit <= 5; ++digit) append(a_.get(), digit);
  a_.wait();
  EXPECT_EQ(found(), 12345);
}

TEST_P(EmulatedDeviceTest, UnawaitedWorkMayNotHaveHappened) {
  fill_bytes(a_.get(), place_.data(), 0, sizeof(int));
  a_.wait();
  store(a_.get(), 7);
  const int early = found();
  if (at_once()) {
    EXPECT_EQ(early, 7);
  }
  if (late()) {
    EXPECT_EQ(early, 0);
  }
  a_.wait();
  EXPECT_EQ(found(), 7);
}

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

TEST_P(EmulatedDeviceTest, FreeingWaitsForTheDevice) {
  store(a_.get(), 3);
  { const DeviceArray<float> freed(1); }
  EXPECT_EQ(found(), 3);
}

TEST_P(EmulatedDeviceTest, QueryingAStreamAdvancesItsWork) {
  store(a_.get(), 1);
  append(a_.get(), 2);
  int asked = 0;
  while (!a_.idle()) ++asked;
  EXPECT_EQ(found(), 12);
  if (late()) {
    EXPECT_GT(asked, 0);
  }
}

TEST_P(EmulatedDeviceTest, RecordedWorkRunsWhenLaunched) {
  store(a_.get(), 0);
  a_.wait();
  const Graph graph(a_.get(), [&] {
    append(a_.get(), 1);
    append(a_.get(), 2);
  });
  EXPECT_EQ(found(), 0);
  graph.start(a_.get());
  append(a_.get(), 9);
  graph.start(a_.get());
  a_.wait();
  EXPECT_EQ(found(), 12912);
}

TEST_P(EmulatedDeviceTest, AReplacedRecordingRunsAtTheNextLaunch) {
  store(a_.get(), 0);
  a_.wait();
  const auto digits = [&](int first, int second) {
    append(a_.get(), first);
    append(a_.get(), second);
  };
  const std::int64_t before = emulation::graphs_made();
  Graph graph(a_.get(), [&] { digits(1, 2); });
  graph.start(a_.get());
  graph.record(a_.get(), [&] { digits(3, 4); });
  EXPECT_EQ(emulation::graphs_made(), before + 1);
  graph.start(a_.get());
  a_.wait();
  EXPECT_EQ(found(), 1234);
  graph.record(a_.get(), [&] { append(a_.get(), 5); });
  EXPECT_EQ(emulation::graphs_made(), before + 2) << "other work needs another graph";
  EXPECT_THROW(graph.record(a_.get(), [&] { a_.wait(); }), std::logic_error);
  graph.start(a_.get());
  a_.wait();
  EXPECT_EQ(found(), 12345);
}

TEST_P(EmulatedDeviceTest, StreamsTakePartInARecordingUntilTheyRejoin) {
  DeviceArray<int> other(1);
  Event fork;
  Event join;
  const auto work = [&](bool joins) {
    fork.record(a_.get());
    fork.hold(b_.get());
    launch(store_kernel, {1}, {32}, 0, b_.get(), 5, other.data());
    store(a_.get(), 4);
    join.record(b_.get());
    if (!joins) return;
    join.hold(a_.get());
    append(a_.get(), 6);
  };
  const Graph graph(a_.get(), [&] { work(true); });
  b_.wait();
  EXPECT_THROW(other.to_host(), std::logic_error) << "nothing was written yet";
  graph.start(a_.get());
  a_.wait();
  EXPECT_EQ(other.to_host()[0], 5);
  EXPECT_EQ(found(), 46);
  EXPECT_THROW(Graph(a_.get(), [&] { work(false); }), std::logic_error);
  EXPECT_THROW(join.hold(b_.get()), std::logic_error) << "a moment that was only recorded";
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

TEST_P(EmulatedDeviceTest, ARecordingRejectsOutsideEvents) {
  Event outside;
  store(b_.get(), 1);
  outside.record(b_.get());
  const auto record = [&] { return Graph(a_.get(), [&] { outside.hold(a_.get()); }); };
  if (late()) {
    EXPECT_THROW(record(), std::logic_error);
  }
}

TEST_P(EmulatedDeviceTest, ElapsedTimeRequiresCompletedEvents) {
  Event begin;
  Event end;
  begin.record(a_.get());
  EXPECT_THROW(static_cast<void>(end.seconds_since(begin)), std::logic_error);
  store(a_.get(), 1);
  end.record(a_.get());
  if (late()) {
    EXPECT_THROW(static_cast<void>(end.seconds_since(begin)), std::logic_error);
  }
  a_.wait();
  EXPECT_EQ(end.seconds_since(begin), 0.0);
}

TEST_P(EmulatedDeviceTest, CopiesRunInTheirStream) {
  PinnedBytes here(sizeof(int));
  const int value = 5;
  std::memcpy(here.data(), &value, sizeof value);
  copy_bytes(a_.get(), place_.data(), here.data(), sizeof(int));
  std::memset(here.data(), 0, sizeof(int));
  a_.wait();
  if (at_once()) {
    EXPECT_EQ(found(), 5);
  }
  if (late()) {
    EXPECT_EQ(found(), 0) << "the host was too early";
  }
}

TEST_P(EmulatedDeviceTest, CopiesRequireArrayBoundsAndPinnedMemory) {
  std::vector<int> plain(2);
  const DeviceArray<int> two{std::span<const int>(plain)};
  PinnedBytes here(2 * sizeof(int));
  EXPECT_NO_THROW(copy_bytes(a_.get(), here.data(), two.data(), 2 * sizeof(int)));
  EXPECT_THROW(copy_bytes(a_.get(), plain.data(), two.data(), 2 * sizeof(int)), std::logic_error);
  EXPECT_THROW(copy_bytes(a_.get(), here.data(), two.data() + 1, 2 * sizeof(int)), std::logic_error);
  EXPECT_THROW(copy_bytes(a_.get(), here.data() + 1, two.data(), 2 * sizeof(int)), std::logic_error);
  EXPECT_THROW(fill_bytes(a_.get(), place_.data(), 0, 2 * sizeof(int)), std::logic_error);
  EXPECT_THROW(copy_to_host(plain.data(), std::span(plain)), std::logic_error);
  a_.wait();
}

struct Labelled {
  bool flag = false;  // followed by padding
  int* place = nullptr;
};

void labelled_kernel(Labelled where) {
  if (threadIdx.x == 0 && where.place != nullptr) *where.place = 8;
}

TEST_P(EmulatedDeviceTest, KernelsRejectHostPointers) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "not told apart under a sanitizer";
#endif
  int here = 0;
  EXPECT_THROW(launch(store_kernel, {1}, {32}, 0, a_.get(), 1, &here), std::logic_error);
  EXPECT_THROW(launch(labelled_kernel, {1}, {32}, 0, a_.get(), Labelled{true, &here}), std::logic_error);
  EXPECT_NO_THROW(launch(labelled_kernel, {1}, {32}, 0, a_.get(), Labelled{true, place_.data()}));
  EXPECT_NO_THROW(launch(labelled_kernel, {1}, {32}, 0, a_.get(), Labelled{}));
  a_.wait();
  EXPECT_EQ(found(), 8);
}

TEST_P(EmulatedDeviceTest, UnwrittenMemoryIsNan) {
  DeviceArray<double> narrow(1);
  DeviceArray<float> wide(3);
  DeviceArray<int> both(1);
  launch(count_nan_kernel, {1}, {32}, 0, a_.get(), wide.data(), narrow.data(), both.data());
  a_.wait();
  EXPECT_EQ(both.to_host()[0], 4);
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
  launch(increment_kernel, {1}, {32}, 0, a_.get(), numbers.data() + 3);  // computed from such a number
  EXPECT_THROW(copy(3, 1), std::logic_error);
  DeviceArray<float> other(4);
  EXPECT_NO_THROW(copy_bytes(a_.get(), other.data(), numbers.data(), 4 * sizeof(float)));
  a_.wait();
}

TEST(EmulatedCardTest, RunsAsManyBlocksAsItsRegistersThreadsAndSharedMemoryAllow) {
  using emulation::kAda;
  using emulation::kAmpere;
  using emulation::kHopper;
  EXPECT_EQ(kHopper.blocks_at_once(32, 256, 0), 132 * 8) << "threads";
  EXPECT_EQ(kAda.blocks_at_once(32, 256, 0), 142 * 6);
  EXPECT_EQ(kHopper.blocks_at_once(128, 256, 0), 132 * 2) << "registers";
  EXPECT_EQ(kHopper.blocks_at_once(129, 256, 0), 132);
  EXPECT_EQ(kHopper.blocks_at_once(32, 256, 113 * 1024), 132 * 2) << "shared memory";
  EXPECT_EQ(kHopper.blocks_at_once(32, 256, 113 * 1024 + 1), 132);
  EXPECT_EQ(kHopper.blocks_at_once(255, 256, 227 * 1024), 132);
  EXPECT_EQ(kAmpere.blocks_at_once(255, 256, 163 * 1024 + 1), 0);
}

TEST_P(EmulatedDeviceTest, RejectsSizesBeyondGpuLimits) {
  const auto started = [&](dim3 grid, std::size_t shared_bytes) {
    launch(store_kernel, grid, {32}, shared_bytes, a_.get(), 1, place_.data());
    a_.wait();
  };
  EXPECT_NO_THROW(started({2, 2}, 227 * 1024));
  EXPECT_THROW(started({1, 65'536}, 0), std::logic_error);
  EXPECT_THROW(started({1}, 227 * 1024 + 1), std::logic_error);
}

class SeveralDevicesTest : public EmulatedDeviceTest {
 protected:
  void SetUp() override {
    EmulatedDeviceTest::SetUp();
    emulation::set_device_count(2);
  }
  void TearDown() override {
    use_device(0);
    emulation::set_device_count(1);
  }
};

TEST_P(SeveralDevicesTest, EachWorksInItsOwnStreamsAndMemory) {
  use_device(1);
  DeviceArray<int> other(1);
  const OwnedStream there;
  launch(store_kernel, {1}, {32}, 0, there.get(), 6, other.data());
  use_device(0);
  store(a_.get(), 5);
  there.wait();
  a_.wait();
  EXPECT_EQ(found(), 5);
  use_device(1);
  EXPECT_EQ(other.to_host()[0], 6);
}

TEST_P(SeveralDevicesTest, AThreadStartsWorkOnItsDeviceOnly) {
  DeviceArray<int> other(1);
  Event event;
  PinnedBytes here(sizeof(int));
  use_device(1);
  const OwnedStream there;
  EXPECT_THROW(store(a_.get(), 1), std::logic_error) << "a stream of another device";
  EXPECT_THROW(event.record(there.get()), std::logic_error);
  EXPECT_THROW(fill_bytes(there.get(), other.data(), 0, sizeof(int)), std::logic_error);
  EXPECT_THROW(copy_bytes(there.get(), here.data(), other.data(), sizeof(int)), std::logic_error);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_THROW(store(there.get(), 1), std::logic_error) << "memory of another device";
#endif
  EXPECT_THROW(use_device(2), CudaError);
  use_device(0);
  store(a_.get(), 2);
  a_.wait();
  EXPECT_EQ(found(), 2);
}

/// Each block continues where the previous one ended, which no GPU guarantees.
void in_a_row_kernel(int* numbers) {
  if (threadIdx.x == 0) numbers[blockIdx.x + 1] = numbers[blockIdx.x] + 1;
}

TEST_P(EmulatedDeviceTest, DetectsDependenciesBetweenBlocks) {
  DeviceArray<int> numbers(65);
  fill_bytes(a_.get(), numbers.data(), 0, 65 * sizeof(int));
  launch(in_a_row_kernel, {64}, {32}, 0, a_.get(), numbers.data());
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
  emulation::fail_recordings(2);
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

TEST_P(EmulatedDeviceTest, MappedArraysGrowInPlaceAndByWhatIsUsed) {
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(double));
  const std::vector<std::int64_t> sizes{1, 600, 601, 70'000, 90'000};
  MappedArray<double> array = grown(a_.get(), {sizes.front()});
  const double* first = array.data();
  for (const std::int64_t size : sizes) {
    array.reserve(a_.get(), size, size);
    EXPECT_EQ(array.data(), first);
    EXPECT_GE(array.bytes(), size * kNumber);
    EXPECT_LT(array.bytes(), size * kNumber + AddressRange::kChunk);
  }
}

TEST_P(EmulatedDeviceTest, MappedArraysKeepTheirNumbersWhetherOrNotMemoryCanBeMapped) {
  const std::vector<std::int64_t> sizes{1, 600, 601, 70'000, 90'000};
  for (const bool maps : {true, false}) {
    emulation::set_maps_memory(maps);
    const MappedArray<double> array = grown(a_.get(), sizes);
    emulation::set_maps_memory(true);
    EXPECT_EQ(array.grows_in_place(), maps);
    std::vector<double> found(90'000);
    copy_to_host(array.data(), std::span(found));
    std::vector<double> expected(90'000);
    for (const std::int64_t size : sizes) expected[size - 1] = static_cast<double>(size);
    EXPECT_EQ(found, expected);
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

TEST_P(EmulatedDeviceTest, ARecordingRejectsMapping) {
  AddressRange range;
  EXPECT_THROW(Graph(a_.get(), [&] { range.grow(a_.get(), 1); }), std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Schedules, EmulatedDeviceTest, testing::ValuesIn(kSchedules));
INSTANTIATE_TEST_SUITE_P(Schedules, SeveralDevicesTest, testing::ValuesIn(kSchedules));

class EmulatedDeviceDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    emulation::forget_everything();
    emulation::set_schedule(Schedule::kBackward);
  }
};

TEST_F(EmulatedDeviceDeathTest, HostAccessToDeviceMemoryCrashes) {
  DeviceArray<int> there(std::vector<int>{1, 2, 3});
  EXPECT_DEATH(there.data()[1] = 5, "accessed device memory|SEGV");
}

TEST_F(EmulatedDeviceDeathTest, DetectsWritesBeyondAnArray) {
  const auto write_behind = [] {
    const DeviceArray<int> there(3);
    const OwnedStream stream;
    launch(store_kernel, {1}, {32}, 0, stream.get(), 1, const_cast<int*>(there.data()) + 3);
  };
  EXPECT_DEATH(write_behind(), "wrote outside the bounds of an array|use-after-poison");
}

TEST_F(EmulatedDeviceDeathTest, DetectsAccessBeyondWhatIsMapped) {
  const auto write_behind = [] {
    const OwnedStream stream;
    AddressRange range;
    range.grow(stream.get(), 1);
    launch(store_kernel, {1}, {32}, 0, stream.get(), 1,
           reinterpret_cast<int*>(range.data() + range.bytes()));
    stream.wait();
  };
  EXPECT_DEATH(write_behind(), "not allocated|SEGV");
}

TEST_F(EmulatedDeviceDeathTest, HostAccessToMappedMemoryCrashes) {
  const OwnedStream stream;
  AddressRange range;
  range.grow(stream.get(), 1);
  EXPECT_DEATH(range.data()[0] = std::byte{1}, "accessed device memory|SEGV");
}

TEST_F(EmulatedDeviceDeathTest, DetectsPinnedMemoryFreedBeforeItsCopies) {
  const auto free_early = [] {
    const DeviceArray<int> there(1);
    const OwnedStream stream;
    PinnedBytes here(sizeof(int));
    copy_bytes(stream.get(), here.data(), there.data(), sizeof(int));
    here = PinnedBytes(8);
  };
  EXPECT_DEATH(free_early(), "freed while it is being copied");
}

}  // namespace
}  // namespace olrank::emulated
