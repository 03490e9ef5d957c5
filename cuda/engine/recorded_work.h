#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "cuda/runtime/products.h"
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

/// A stream per member, with its products; a single member needs none.
class MemberStreams {
 public:
  MemberStreams(ProductPlans& plans, std::int64_t members)
      : streams_(members > 1 ? members : 0), joins_(streams_.size()) {
    products_.reserve(streams_.size());
    for (const OwnedStream& stream : streams_) products_.emplace_back(plans, stream.get());
  }

  /// Starts work(products in the member's stream, member) for all members side by side, after the earlier
  /// and before the later work of the stream of `all`.
  void run(Products& all, FunctionRef<void(Products& of_member, std::int64_t member)> work) {
    if (streams_.empty()) {
      work(all, 0);
      return;
    }
    fork_.record(all.stream());
    for (std::size_t member = 0; member < streams_.size(); ++member) {
      const Stream own = streams_[member].get();
      fork_.hold(own);
      work(products_[member], static_cast<std::int64_t>(member));
      joins_[member].record(own);
      joins_[member].hold(all.stream());
    }
  }

  std::int64_t bytes() const {
    return products_.empty() ? 0 : std::ssize(products_) * products_.front().bytes();
  }

 private:
  std::vector<OwnedStream> streams_;
  std::vector<Products> products_;
  std::vector<Event> joins_;
  Event fork_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
