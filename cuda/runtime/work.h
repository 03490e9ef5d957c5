#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/runtime/execution_context.h"
#include "cuda/runtime/batch.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/stream.h"

// Streams, events, captured graphs and copies. The tests have a twin of this file for the CPU.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Selects the calling thread's device.
inline void use_device(int index) {
  OLRANK_CUDA_CHECK(cudaSetDevice(index));
}

/// Whether what a query asked about is done.
inline bool is_done(cudaError_t status) {
  if (status != cudaErrorNotReady) {
    OLRANK_CUDA_CHECK(status);
    return true;
  }
  cudaGetLastError();  // not an error, so that no later check may report it
  return false;
}

/// A stream that does not wait for the default stream.
class OwnedStream {
 public:
  OwnedStream() { OLRANK_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnedStream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  OwnedStream(OwnedStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  OwnedStream& operator=(OwnedStream&&) = delete;

  Stream get() const { return stream_; }
  /// Waits on the host for everything started in this stream.
  void wait() const { wait_for(stream_); }
  /// Waits at the point of a round to which all trials of a batch come.
  void wait_in_step() const {
    if (Seat* seat = Seat::of_thread()) seat->meet(true);
    wait();
  }
  /// Whether everything started in this stream is done.
  bool idle() const { return is_done(cudaStreamQuery(stream_)); }
  /// Also for what the calling thread's seat has not begun.
  static void wait_for(Stream stream) {
    if (Seat* seat = Seat::of_thread()) seat->meet();
    OLRANK_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

 private:
  Stream stream_ = nullptr;
};

/// A point in a stream.
class Event {
 public:
  Event() { OLRANK_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() {
    if (event_ == nullptr) return;
    finish_before_freeing();
    cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)), meeting_(other.meeting_) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    std::swap(meeting_, other.meeting_);
    return *this;
  }

  void record(Stream stream) {
    start_in_turn(stream,
                  [event = event_](Stream where) { OLRANK_CUDA_CHECK(cudaEventRecord(event, where)); });
    if (const Seat* seat = Seat::of_thread()) meeting_ = seat->meetings();
  }
  /// Makes the stream's later work wait for this event.
  void hold(Stream stream) const {
    start_in_turn(stream,
                  [event = event_](Stream where) { OLRANK_CUDA_CHECK(cudaStreamWaitEvent(where, event)); });
  }
  /// Waits on the host until it has passed; at once where it was never recorded.
  void wait() const {
    if (Seat* seat = Seat::of_thread(); seat != nullptr && meeting_ == seat->meetings()) seat->meet();
    OLRANK_CUDA_CHECK(cudaEventSynchronize(event_));
  }
  bool passed() const {
    if (const Seat* seat = Seat::of_thread(); seat != nullptr && meeting_ == seat->meetings()) return false;
    return is_done(cudaEventQuery(event_));
  }
  /// Both events must have passed.
  double seconds_since(const Event& earlier) const {
    float milliseconds = 0.0F;
    OLRANK_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
    return 1e-3 * double{milliseconds};
  }

 private:
  cudaEvent_t event_ = nullptr;
  std::int64_t meeting_ = -1;  // at which its record begins
};

/// Work that is recorded once and started by one call.
class Graph {
 public:
  Graph() = default;
  /// Records the work that `work` starts in this stream, and in streams that it forks from it and joins
  /// again, without running it.
  Graph(Stream stream, FunctionRef<void()> work) { record(stream, work); }
  ~Graph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Replaces what was recorded. Work of the same kernels and order, with other arguments and sizes, takes
  /// the place of the old one in the executable graph, which costs less than making a new one; launches
  /// that were started keep the old.
  void record(Stream stream, FunctionRef<void()> work) {
    const Captured captured(stream, work);
    cudaGraphExecUpdateResultInfo info{};
    if (graph_ != nullptr) {
      const cudaError_t status = cudaGraphExecUpdate(graph_, captured.graph, &info);
      if (status == cudaSuccess) return;
      cudaGetLastError();  // a new graph serves as well, so that no later check may report it
    }
    cudaGraphExec_t made = nullptr;
    OLRANK_CUDA_CHECK(cudaGraphInstantiate(&made, captured.graph, 0));
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    graph_ = made;
  }

  void start(Stream stream) const { OLRANK_CUDA_CHECK(cudaGraphLaunch(graph_, stream)); }

 private:
  struct Captured {
    cudaGraph_t graph = nullptr;

    Captured(Stream stream, FunctionRef<void()> work) {
      // Thread-local, so that other threads may allocate during the capture.
      OLRANK_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      try {
        work();
      } catch (...) {
        cudaStreamEndCapture(stream, &graph);
        if (graph != nullptr) cudaGraphDestroy(graph);
        cudaGetLastError();  // the exception reports it
        throw;
      }
      OLRANK_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    }
    ~Captured() { cudaGraphDestroy(graph); }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
  };

  cudaGraphExec_t graph_ = nullptr;
};

/// Host memory that a device can copy to and from asynchronously.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t size) : size_(size) {
    if (size > 0) OLRANK_CUDA_CHECK(cudaMallocHost(&data_, size));
  }
  ~PinnedBytes() {
    if (data_ == nullptr) return;
    finish_before_freeing();
    cudaFreeHost(data_);
  }
  PinnedBytes(PinnedBytes&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  PinnedBytes& operator=(PinnedBytes&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }

  /// Makes room for `size` bytes, and for twice as many when it grows; contents are lost then.
  void reserve(std::size_t size) {
    if (size_ < size) *this = PinnedBytes(2 * size);
  }
  std::size_t size() const { return size_; }
  std::byte* data() { return static_cast<std::byte*>(data_); }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

/// Copies between any two addresses. Transfers from and to the host are asynchronous only with pinned
/// memory.
inline void copy_bytes(Stream stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (Seat* seat = Seat::of_thread()) return seat->copy(to, from, bytes);
  OLRANK_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/// Uninitialised memory of the calling thread's device.
inline void* allocate_bytes(std::size_t bytes) {
  void* memory = nullptr;
  OLRANK_CUDA_CHECK(cudaMalloc(&memory, bytes));
  return memory;
}
/// Waits for the device.
inline void free_bytes(void* memory) {
  cudaFree(memory);
}
/// Copies to memory that no work uses yet.
inline void upload_bytes(void* to, const void* from, std::size_t bytes) {
  OLRANK_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  // The transfer may still be running, and non-blocking streams do not wait for it.
  OLRANK_CUDA_CHECK(cudaStreamSynchronize(nullptr));
}

/// Synchronous copies in the calling thread's default stream; the caller has waited for other uses of the
/// memory. They wait for no other thread's work, as another thread may be capturing a graph.
template <class T>
void copy_to_host(const T* from, std::span<T> to) {
  finish_queued_work();
  if (!to.empty()) OLRANK_CUDA_CHECK(cudaMemcpy(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost));
}
template <class T>
void copy_to_device(std::span<const T> from, T* to) {
  if (from.empty()) return;
  finish_queued_work();
  upload_bytes(to, from.data(), from.size_bytes());
}

inline void fill_bytes(Stream stream, void* to, int value, std::size_t bytes) {
  if (bytes == 0) return;
  if (Seat* seat = Seat::of_thread()) return seat->fill(to, value, bytes);
  OLRANK_CUDA_CHECK(cudaMemsetAsync(to, value, bytes, stream));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
