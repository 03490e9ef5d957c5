#include "tests/cuda/emulation/device_work.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/error.h"

namespace olrank::emulation {

struct Task {
  std::function<void()> work;
  std::vector<Moment> after;
  std::span<const std::byte> copied;
  int recording = 0;
  bool done = false;
};

namespace {

/// Unfinished work, in the order of its starts, and the current recording.
struct Device {
  std::map<int, CUstream_st> default_streams;  // by device
  std::vector<Moment> pending;
  int recordings = 0;
  int recording_now = 0;
  std::map<int, int> starts_to_failure;  // by device
  std::size_t pageable = 0;              // bytes of the largest copy to such memory
  std::vector<Moment> recorded;
  std::vector<Stream> recorded_streams;
  std::vector<CUstream_st> streams_before;  // before the recording
  std::uint64_t coins = 0x2545F4914F6CDD1DU;
};

Device device;

CUstream_st& state_of(Stream stream) {
  if (stream != nullptr) return *stream;
  not_while_recording("Work in the default stream");
  return device.default_streams[selected_device()];
}

void check_device_of(Stream stream) {
  if (stream != nullptr && stream->device != selected_device())
    throw std::logic_error("Work is started in a stream of another device than the selected one.");
}

std::size_t draw(std::size_t count) {
  device.coins = device.coins * 6364136223846793005U + 1442695040888963407U;
  return static_cast<std::size_t>(device.coins >> 33) % count;
}

bool is_ready(const Task& task) {
  return std::all_of(task.after.begin(), task.after.end(), [](const Moment& one) { return one->done; });
}

void do_now(std::size_t place) {
  const Moment task = device.pending[place];
  device.pending.erase(device.pending.begin() + static_cast<std::ptrdiff_t>(place));
  task->done = true;
  task->after.clear();
  const std::function<void()> work = std::exchange(task->work, {});
  const OnDevice here;
  if (work) work();
}

/// Runs one of these tasks, which may wait for each other; returns false if there is none.
bool do_one(const std::function<bool(const Moment&)>& wanted) {
  std::vector<std::size_t> ready;
  for (std::size_t place = 0; place < device.pending.size(); ++place) {
    if (wanted(device.pending[place]) && is_ready(*device.pending[place])) ready.push_back(place);
  }
  if (ready.empty()) return false;
  const std::size_t last = ready.size() - 1;
  const Schedule order = machine.schedule;
  do_now(ready[order == Schedule::kRandom ? draw(ready.size()) : order == Schedule::kForward ? 0 : last]);
  return true;
}

bool any(const Moment&) {
  return true;
}

/// The work that must be done before this moment, and the moment itself.
std::unordered_set<const Task*> needed_for(const Moment& moment) {
  std::unordered_set<const Task*> found;
  std::vector<const Task*> open{moment.get()};
  while (!open.empty()) {
    const Task* task = open.back();
    open.pop_back();
    if (task->done || !found.insert(task).second) continue;
    for (const Moment& before : task->after) open.push_back(before.get());
  }
  return found;
}

Moment add(Stream stream, std::function<void()> work, std::span<const std::byte> copied) {
  CUstream_st& state = state_of(stream);
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  task->copied = copied;
  task->after = std::exchange(state.held, {});
  if (state.last != nullptr) task->after.push_back(state.last);
  std::erase_if(task->after, [](const Moment& one) { return one->done; });
  task->recording = state.recording;
  state.last = task;
  (state.recording != 0 ? device.recorded : device.pending).push_back(task);
  return task;
}

void go_on() {
  if (device.pending.empty() || machine.schedule == Schedule::kBackward) return;
  const OnDevice here;  // once for all of them
  while ((machine.schedule == Schedule::kForward || draw(2) == 0) && do_one(any)) {
  }
}

void take_part(Stream stream) {
  CUstream_st& state = state_of(stream);
  device.recorded_streams.push_back(stream);
  device.streams_before.push_back(state);
  state = {};
  state.recording = device.recording_now;
}

void leave_recording() {
  for (std::size_t i = 0; i < device.recorded_streams.size(); ++i)
    *device.recorded_streams[i] = device.streams_before[i];
  device.recorded_streams.clear();
  device.streams_before.clear();
  if (std::exchange(device.recording_now, 0) != 0) emulator_mutex().unlock();
}

/// For each task the numbers of those before it.
std::vector<std::vector<std::size_t>> edges_of(const std::vector<Moment>& tasks) {
  std::map<const Task*, std::size_t> numbers;
  std::vector<std::vector<std::size_t>> edges;
  for (const Moment& task : tasks) {
    std::vector<std::size_t>& before = edges.emplace_back();
    for (const Moment& one : task->after) before.push_back(numbers.at(one.get()));
    numbers.emplace(task.get(), numbers.size());
  }
  return edges;
}

}  // namespace

void start(Stream stream, std::function<void()> work, std::span<const std::byte> copied) {
  const std::lock_guard turn(emulator_mutex());
  check_device_of(stream);
  if (const auto fails = device.starts_to_failure.find(selected_device());
      fails != device.starts_to_failure.end() && --fails->second == 0)
    throw CudaError("The emulated GPU has failed.");
  ++counts.starts;
  add(stream, std::move(work), copied);
  go_on();
}

void let_device_fail(int index, int starts) {
  const std::lock_guard turn(emulator_mutex());
  device.starts_to_failure[index] = starts;
}

void note_pageable_copy(std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  device.pageable = std::max(device.pageable, bytes);
}

std::size_t take_largest_pageable_copy() {
  const std::lock_guard turn(emulator_mutex());
  return std::exchange(device.pageable, 0);
}

Moment latest(Stream stream) {
  const std::lock_guard turn(emulator_mutex());
  const CUstream_st& state = state_of(stream);
  // The beginning of a recording is a moment of it.
  const bool begins_recording = state.last == nullptr && state.recording != 0;
  if (state.held.empty() && !begins_recording) return state.last;
  return add(stream, {}, {});
}

void hold(Stream stream, const Moment& moment) {
  const std::lock_guard turn(emulator_mutex());
  if (moment == nullptr || moment->done) return;
  CUstream_st& state = state_of(stream);
  if (moment->recording != 0 && moment->recording != device.recording_now)
    throw std::logic_error("A stream waits for an event that was recorded in a graph.");
  if (moment->recording != 0 && state.recording == 0) take_part(stream);
  if (moment->recording != state.recording)
    throw std::logic_error("Recorded work waits for an event outside its recording.");
  state.held.push_back(moment);
}

void wait(const Moment& moment) {
  const std::lock_guard turn(emulator_mutex());
  not_while_recording("A wait");
  ++counts.waits;
  if (moment == nullptr || moment->done) return;
  const OnDevice here;
  const std::unordered_set<const Task*> needed = needed_for(moment);
  const auto wanted = [&](const Moment& one) { return needed.contains(one.get()); };
  while (!moment->done) {
    if (machine.schedule == Schedule::kRandom && draw(4) == 0) do_one(any);
    if (!moment->done && !do_one(wanted)) throw std::logic_error("This wait would never end.");
  }
}

void wait_for_everything() {
  const std::lock_guard turn(emulator_mutex());
  not_while_recording("A wait for the whole device");
  if (device.pending.empty()) return;
  const OnDevice here;
  while (do_one(any)) {
  }
}

bool passed(const Moment& moment) {
  const std::lock_guard turn(emulator_mutex());
  not_while_recording("Querying whether work is done");
  return moment == nullptr || moment->done;
}

bool passes_soon(const Moment& moment) {
  const std::lock_guard turn(emulator_mutex());
  if (passed(moment)) return true;
  const std::unordered_set<const Task*> needed = needed_for(moment);
  do_one([&](const Moment& one) { return needed.contains(one.get()); });
  return moment->done;
}

void check_not_copied(const void* first, std::size_t bytes) {
  const std::lock_guard turn(emulator_mutex());
  const auto* begin = static_cast<const std::byte*>(first);
  for (const Moment& task : device.pending) {
    const std::byte* copied = task->copied.data();
    if (copied < begin + bytes && begin < copied + task->copied.size())
      throw std::logic_error("Pinned memory was freed while it is being copied.");
  }
}

void not_while_recording(const char* what) {
  const std::lock_guard turn(emulator_mutex());
  if (device.recording_now != 0)
    throw std::logic_error(std::string(what) + " is not allowed while work is being recorded.");
}

void begin_recording(Stream stream) {
  const std::lock_guard turn(emulator_mutex());
  if (stream == nullptr) throw std::logic_error("The default stream cannot be recorded.");
  check_device_of(stream);
  not_while_recording("Starting another recording");
  if (machine.recordings_to_fail > 0) {
    --machine.recordings_to_fail;
    throw CudaError("A test lets this recording fail.");
  }
  device.recording_now = ++device.recordings;
  device.recorded.clear();
  take_part(stream);
  emulator_mutex().lock();  // until leave_recording()
}

Recording end_recording(Stream stream) {
  const std::lock_guard turn(emulator_mutex());
  const Moment end = latest(stream);
  Recording made;
  made.tasks_ = std::exchange(device.recorded, {});
  const std::size_t joined = end == nullptr ? 0 : needed_for(end).size();
  leave_recording();
  if (joined != made.tasks_.size())
    throw std::logic_error("A stream that took part in a recording has not rejoined.");
  ++counts.graphs_made;
  return made;
}

void give_recording_up() {
  const std::lock_guard turn(emulator_mutex());
  device.recorded.clear();
  leave_recording();
}

void Recording::start(Stream stream) {
  const std::lock_guard turn(emulator_mutex());
  check_device_of(stream);
  hold(stream, started_);
  const Moment before = latest(stream);
  std::map<const Task*, Moment> copies;
  for (const Moment& task : tasks_) {
    auto copy = std::make_shared<Task>();
    copy->work = task->work;
    copy->copied = task->copied;
    if (before != nullptr && !before->done) copy->after.push_back(before);
    for (const Moment& one : task->after) copy->after.push_back(copies.at(one.get()));
    copies[task.get()] = copy;
    device.pending.push_back(copy);
  }
  for (const auto& [task, copy] : copies) state_of(stream).held.push_back(copy);
  started_ = latest(stream);
  go_on();
}

void Recording::replace(Recording&& other) {
  if (edges_of(tasks_) == edges_of(other.tasks_)) --counts.graphs_made;
  tasks_ = std::move(other.tasks_);
}

void forget_everything() {
  const std::lock_guard turn(emulator_mutex());
  give_recording_up();
  while (!device.pending.empty()) {
    device.pending.back()->done = true;
    device.pending.pop_back();
  }
  device.default_streams.clear();
  set_device_count(1);
  select_device(0);
}

}  // namespace olrank::emulation
