#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/runtime/stream.h"
#include "tests/cuda/emulation/emulator.h"

// When the emulated device does what it is asked for. Only streams, events and waits order its work, as on
// a GPU: whatever else may happen in any order, so that a wait that is missing shows as a wrong result.
// Going forward (set_schedule) everything is done as soon as it is started; going backward nothing is done
// before it is waited for, and then the latest first; at random, some of it now and then. Broken rules are
// std::logic_error. Not for several threads of the host.
namespace olrank::emulation {

struct Task;
/// A moment in a stream; null for one that has always passed.
using Moment = std::shared_ptr<Task>;

/// Begins work in this stream; null is the default one, which other streams do not wait for. `copied` is
/// the host memory that it reads or writes.
void start(Stream stream, std::function<void()> work, std::span<const std::byte> copied = {});
Moment latest(Stream stream);
/// Lets the stream's later work wait for this moment.
void hold(Stream stream, const Moment& moment);
void wait(const Moment& moment);
void wait_for_everything();
bool passed(const Moment& moment);
/// A device goes on while the host asks whether it is done.
bool passes_soon(const Moment& moment);

/// Throws where work that is not done copies from or to this host memory, which is about to be freed.
void check_not_copied(const void* first, std::size_t bytes);

/// What must not happen while work is being recorded: throws with its name.
void not_while_recording(const char* what);

/// Work that was recorded, in its own order.
class Recording {
 public:
  bool empty() const { return tasks_.empty(); }
  void start(Stream stream);

 private:
  friend void begin_recording(Stream stream);
  friend Recording end_recording(Stream stream);

  std::vector<Moment> tasks_;  // in an order in which they may happen
  Moment started_;             // the end of its latest start
};

/// From here on work of this stream is recorded, and that of streams that wait for its moments.
void begin_recording(Stream stream);
/// All streams that took part have joined this one again.
Recording end_recording(Stream stream);
void give_recording_up();

/// Forgets all work that is not done, as a test does before it begins.
void forget_everything();

}  // namespace olrank::emulation

/// What a Stream points to here.
struct CUstream_st {
  olrank::emulation::Moment last;
  std::vector<olrank::emulation::Moment> held;  // what its next work waits for besides
  int recording = 0;                            // number of the recording it takes part in; 0 for none
};
