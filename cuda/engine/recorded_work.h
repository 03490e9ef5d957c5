#pragma once

#include <atomic>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Work that is recorded once and then started by one call. If it cannot be recorded, for which other users
/// of the driver can be the reason, it is started as it is.
class RecordedWork {
 public:
  /// Records what `work` starts in this stream, unless that is done or fails, or the thread's work waits
  /// for that of others. Returns whether it is recorded.
  bool record(Stream stream, FunctionRef<void()> work) {
    if (Seat::of_thread() != nullptr) return false;
    if (!current_) try_to_record(stream, work);
    return current_;
  }
  /// Starts what was recorded, or else `work` itself.
  void start(Stream stream, FunctionRef<void()> work) const {
    if (current_ && Seat::of_thread() == nullptr) {
      graph_.start(stream);
    } else {
      work();
    }
  }

  /// Starts `work`, the first time without recording it: what is done once needs no graph, and kernels must
  /// be loaded before a graph is recorded.
  void run(Stream stream, FunctionRef<void()> work) {
    if (has_run_) {
      record(stream, work);
      start(stream, work);
    } else {
      work();
      has_run_ = true;
    }
  }

  /// The recording is out of date: the next record() replaces it.
  void forget() { current_ = has_run_ = false; }

 private:
  void try_to_record(Stream stream, FunctionRef<void()> work) {
    try {
      graph_.record(stream, work);
      current_ = true;
    } catch (const CudaError& error) {
      static std::atomic_flag said;
      if (!said.test_and_set()) {
        log_warning(
            "Recording work of a GPU failed: {} It runs unrecorded, which is slower, and recording is "
            "tried again at every training.",
            error.what());
      }
    }
  }

  Graph graph_;
  bool current_ = false;
  bool has_run_ = false;  // since forget()
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
