#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

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
  EXPECT_NE(other.to_host()[0], 5);
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
  const DeviceArray<int> two(2);
  std::vector<int> plain(2);
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
  EXPECT_TRUE(std::isnan(DeviceArray<float>(3).to_host()[2]));
  EXPECT_TRUE(std::isnan(DeviceArray<double>(3).to_host()[0]));
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

INSTANTIATE_TEST_SUITE_P(Schedules, EmulatedDeviceTest, testing::ValuesIn(kSchedules));

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
