#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/runtime/function_ref.h"
#include "cuda/runtime/stream.h"

// The twin of streams, events, graphs and copies: everything is done at once, but for what is being
// recorded.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// What the calling thread is recording; null most of the time.
inline std::vector<std::function<void()>>*& recording() {
  thread_local std::vector<std::function<void()>>* steps = nullptr;
  return steps;
}

template <class Step>
void do_or_record(Step&& step) {
  if (recording() != nullptr) {
    recording()->emplace_back(std::forward<Step>(step));
  } else {
    step();
  }
}

inline void use_device(int) {}

class OwnedStream {
 public:
  Stream get() const { return nullptr; }
  void wait() const {}
  bool idle() const { return true; }
  static void wait_for(Stream) {}
};

class Event {
 public:
  void record(Stream) {}
  void hold(Stream) const {}
  double seconds_since(const Event&) const { return 0.0; }
};

class Graph {
 public:
  Graph() = default;
  Graph(Stream, FunctionRef<void()> work) {
    recording() = &steps_;
    work();
    recording() = nullptr;
  }

  explicit operator bool() const { return !steps_.empty(); }
  void start(Stream) const {
    for (const auto& step : steps_) step();
  }

 private:
  std::vector<std::function<void()>> steps_;
};

class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t size) : values_(size, std::byte{0xFF}) {}

  std::size_t size() const { return values_.size(); }
  std::byte* data() { return values_.data(); }
  const std::byte* data() const { return values_.data(); }

 private:
  std::vector<std::byte> values_;
};

inline void copy_bytes(Stream, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) do_or_record([=] { std::memcpy(to, from, bytes); });
}

template <class T>
void copy_to_host(const T* from, std::span<T> to) {
  std::copy(from, from + to.size(), to.begin());
}
template <class T>
void copy_to_device(std::span<const T> from, T* to) {
  std::copy(from.begin(), from.end(), to);
}

inline void fill_bytes(Stream, void* to, int value, std::size_t bytes) {
  if (bytes > 0) do_or_record([=] { std::memset(to, value, bytes); });
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
