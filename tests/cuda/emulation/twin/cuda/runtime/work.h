#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/runtime/execution_context.h"
#include "cuda/runtime/batch.h"
#include "cuda/runtime/stream.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"

// The twin of streams, events, graphs and copies.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

inline void use_device(int index) {
  emulation::select_device(index);
}

class OwnedStream {
 public:
  Stream get() const { return state_.get(); }
  void wait() const { wait_for(get()); }
  void wait_in_step() const {
    if (Seat* seat = Seat::of_thread()) seat->meet(true);
    wait();
  }
  bool idle() const { return emulation::passes_soon(emulation::latest(get())); }
  static void wait_for(Stream stream) {
    if (Seat* seat = Seat::of_thread()) seat->meet();
    emulation::wait(emulation::latest(stream));
  }

 private:
  std::unique_ptr<CUstream_st> state_ = std::make_unique<CUstream_st>();
};

class Event {
 public:
  void record(Stream stream) {
    start_in_turn(stream, [state = state_](Stream where) {
      if (where != nullptr && where->device != state->device)
        throw std::logic_error("An event is recorded in a stream of another device.");
      state->moment = emulation::latest(where);
      state->recorded = true;
    });
    if (const Seat* seat = Seat::of_thread()) meeting_ = seat->meetings();
  }
  void hold(Stream stream) const {
    start_in_turn(stream, [state = state_](Stream where) { emulation::hold(where, state->moment); });
  }
  void wait() const {
    if (Seat* seat = Seat::of_thread(); seat != nullptr && meeting_ == seat->meetings()) seat->meet();
    emulation::wait(state_->moment);
  }
  bool passed() const {
    const Seat* seat = Seat::of_thread();
    return (seat == nullptr || meeting_ != seat->meetings()) && emulation::passes_soon(state_->moment);
  }
  /// No time passes here.
  double seconds_since(const Event& earlier) const {
    for (const Event* event : {this, &earlier}) {
      if (!event->state_->recorded || !emulation::passed(event->state_->moment))
        throw std::logic_error("Seconds are asked for between moments that have not both passed.");
    }
    return 0.0;
  }

 private:
  struct State {
    emulation::Moment moment;
    bool recorded = false;
    int device = emulation::selected_device();
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::int64_t meeting_ = -1;
};

class Graph {
 public:
  Graph() = default;
  Graph(Stream stream, FunctionRef<void()> work) { record(stream, work); }

  void record(Stream stream, FunctionRef<void()> work) {
    emulation::begin_recording(stream);
    try {
      work();
    } catch (...) {
      emulation::give_recording_up();
      throw;
    }
    emulation::Recording made = emulation::end_recording(stream);
    if (recording_ == nullptr) {
      recording_ = std::make_unique<emulation::Recording>(std::move(made));
    } else {
      recording_->replace(std::move(made));
    }
  }

  void start(Stream stream) const { recording_->start(stream); }

 private:
  std::unique_ptr<emulation::Recording> recording_;
};

class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t size) : values_(size, std::byte{0xFF}) {
    if (size == 0) return;
    emulation::not_while_recording("An allocation of pinned memory");
    emulation::register_pinned(values_.data(), size);
  }
  ~PinnedBytes() {
    if (values_.empty()) return;
    finish_before_freeing();
    emulation::check_not_copied(values_.data(), values_.size());
    emulation::forget_pinned(values_.data());
  }
  PinnedBytes(PinnedBytes&&) = default;
  PinnedBytes& operator=(PinnedBytes&& other) noexcept {
    std::swap(values_, other.values_);
    return *this;
  }

  void reserve(std::size_t size) {
    if (values_.size() < size) *this = PinnedBytes(2 * size);
  }
  std::size_t size() const { return values_.size(); }
  std::byte* data() { return values_.data(); }
  const std::byte* data() const { return values_.data(); }

 private:
  std::vector<std::byte> values_;
};

inline void copy_bytes(Stream stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  std::span<const std::byte> of_host;
  for (const void* place : {static_cast<const void*>(to), from}) {
    if (emulation::lies_on_device(place, bytes)) continue;
    if (!emulation::lies_in_pinned_memory(place, bytes))
      throw std::logic_error("A copy goes beyond one array, or to host memory that is not pinned.");
    of_host = {static_cast<const std::byte*>(place), bytes};
  }
  if (Seat* seat = Seat::of_thread()) return seat->copy(to, from, bytes);
  const bool to_host = of_host.data() == to;
  emulation::start(
      stream,
      [=] {
        to_host ? emulation::copy_to_host(to, from, bytes)
                : static_cast<void>(std::memcpy(to, from, bytes));
      },
      of_host);
}

inline void* allocate_bytes(std::size_t bytes) {
  emulation::not_while_recording("An allocation");
  return emulation::allocate_on_device(bytes);
}
inline void free_bytes(void* memory) {
  emulation::wait_for_everything();
  emulation::free_on_device(memory);
}

template <class Copy>
void copy_and_wait(const void* there, std::size_t bytes, const Copy& copy) {
  if (!emulation::lies_on_device(there, bytes)) throw std::logic_error("A copy goes beyond one array.");
  emulation::start(nullptr, copy);
  emulation::wait(emulation::latest(nullptr));
}
inline void upload_bytes(void* to, const void* from, std::size_t bytes) {
  copy_and_wait(to, bytes, [=] { std::memcpy(to, from, bytes); });
}
template <class T>
void copy_to_host(const T* from, std::span<T> to) {
  finish_queued_work();
  if (to.empty()) return;
  emulation::note_pageable_copy(to.size_bytes());
  copy_and_wait(from, to.size_bytes(), [=] { emulation::copy_to_host(to.data(), from, to.size_bytes()); });
}
template <class T>
void copy_to_device(std::span<const T> from, T* to) {
  if (from.empty()) return;
  finish_queued_work();
  upload_bytes(to, from.data(), from.size_bytes());
}

inline void fill_bytes(Stream stream, void* to, int value, std::size_t bytes) {
  if (bytes == 0) return;
  if (!emulation::lies_on_device(to, bytes)) throw std::logic_error("A fill goes beyond one array.");
  if (Seat* seat = Seat::of_thread()) return seat->fill(to, value, bytes);
  emulation::start(stream, [=] { std::memset(to, value, bytes); });
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
