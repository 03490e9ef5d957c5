#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/runtime/stream.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/emulator.h"

// Asynchronous work of the emulated device. Only streams, events and waits order it, as on a GPU;
// everything else may happen in any order, so that a missing wait shows as a wrong result. With the forward
// schedule, work runs as soon as it is started; with the backward one, when it is waited
// for, latest first; with the random one, at random times. Violations of the rules throw std::logic_error.
// Threads take turns, by emulator_mutex().
namespace olrank::emulation {

struct Task;
/// A point in a stream's work; null is always complete.
using Moment = std::shared_ptr<Task>;

/// Starts work in this stream, which must be one of the selected device; null is its default stream, which
/// other streams do not wait for. `copied` is
/// the host memory that the work reads or writes.
void start(Stream stream, std::function<void()> work, std::span<const std::byte> copied = {});
/// Lets one start on this device throw CudaError, after so many others.
void let_device_fail(int index, int starts);
/// The bytes of the largest copy to host memory that is not pinned since the last call.
std::size_t take_largest_pageable_copy();
void note_pageable_copy(std::size_t bytes);
Moment latest(Stream stream);
/// Makes the stream's later work wait for this moment.
void hold(Stream stream, const Moment& moment);
void wait(const Moment& moment);
void wait_for_everything();
bool passed(const Moment& moment);
/// Returns whether the moment is complete; the device makes progress with each call.
bool passes_soon(const Moment& moment);

/// Throws if unfinished work copies from or to this host memory, which is about to be freed.
void check_not_copied(const void* first, std::size_t bytes);

/// Throws if work is being recorded; `what` names the forbidden call.
void not_while_recording(const char* what);

/// A recorded graph.
class Recording {
 public:
  bool empty() const { return tasks_.empty(); }
  void start(Stream stream);
  /// Sets what its next launches run. A graph of as many tasks, in the same order, is updated; another
  /// is made again.
  void replace(Recording&& other);

 private:
  friend void begin_recording(Stream stream);
  friend Recording end_recording(Stream stream);

  std::vector<Moment> tasks_;  // in a valid order
  Moment started_;             // the end of its latest launch
};

/// Starts recording the work of this stream, and of streams that wait for its moments.
void begin_recording(Stream stream);
/// Ends the recording. All streams that took part must have rejoined this one.
Recording end_recording(Stream stream);
void give_recording_up();

/// Drops all unfinished work, at the start of a test, and leaves one device.
void forget_everything();

}  // namespace olrank::emulation

/// The emulated type behind a Stream.
struct CUstream_st {
  olrank::emulation::Moment last;
  std::vector<olrank::emulation::Moment> held;  // what its next work waits for in addition
  int recording = 0;                            // number of its recording; 0 for none
  int device = olrank::emulation::selected_device();
};
