#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/device/device_network.h"
#include "cuda/runtime/stream.h"

// Many trials on one device in lock-step. The thread of a trial takes a seat; from then on its work waits
// in the order in which the thread starts it, and begins when the thread waits for the device. What the
// trials that wait start alike begins as one: the launches of a step are those of one trial.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Numbers between the counters of two grids, so that they lie in different lines of the cache.
constexpr std::size_t kArrivedStride = 32;
constexpr std::size_t kMostSharedGrids = 16;

/// Work that a thread has started and that has not begun.
class QueuedWork {
 public:
  /// Works with one key can begin as one; those without have null.
  using Key = const void*;

  virtual ~QueuedWork() = default;
  virtual Key key() const { return nullptr; }
  virtual void start(Stream stream) = 0;
  /// Starts the first of these, which share the key of this one, the first among them; returns how many.
  /// `arrived` holds kMostSharedGrids × kArrivedStride zeros.
  virtual std::size_t start_with(std::span<QueuedWork* const> /*others*/, Stream stream,
                                 unsigned* /*arrived*/) {
    start(stream);
    return 1;
  }
  /// Whether its blocks wait for each other.
  virtual bool meets() const { return false; }
};

class Batch;

/// The queue of a thread that has joined a batch.
class Seat : public DeviceSeat {
 public:
  explicit Seat(std::shared_ptr<Batch> batch);
  ~Seat() override;
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  /// That of the calling thread, if it has joined a batch.
  static Seat* of_thread();

  void add(std::unique_ptr<QueuedWork> work) { queue_.push_back(std::move(work)); }
  template <class Work>
  void add_call(Work work) {
    struct Call : QueuedWork {
      explicit Call(Work given) : call(std::move(given)) {}
      void start(Stream stream) override { call(stream); }
      Work call;
    };
    add(std::make_unique<Call>(std::move(work)));
  }
  /// Copies between the device and pinned memory, and fills; small ones of several trials begin as one.
  void copy(void* to, const void* from, std::size_t bytes);
  void fill(void* to, int value, std::size_t bytes);

  /// Begins what waits, with others, and waits for it. Those who are `in_step` are at the point of a round
  /// where all of them come, and let those go first who still have to come there.
  void meet(bool in_step = false);
  /// Begins what waits, without others, and waits for it. What fails is thrown, by the second one when the
  /// thread next waits.
  void finish_alone();
  void finish_alone_quietly() noexcept;
  /// Which of the meetings will begin what is added now.
  std::int64_t meetings() const { return meetings_; }
  bool is_empty() const { return queue_.empty(); }

 private:
  friend class Batch;
  friend class Unseated;
  static Seat*& place_of_thread();
  void throw_failure();

  std::shared_ptr<Batch> batch_;
  std::vector<std::unique_ptr<QueuedWork>> queue_;
  std::int64_t meetings_ = 0;
  // By the batch, with its mutex.
  bool waits_ = false;
  bool in_step_ = false;
  bool expected_ = true;
  std::exception_ptr failure_;
};

/// The calling thread has no seat while one of these exists: its work begins at once.
class Unseated {
 public:
  Unseated() : seat_(std::exchange(Seat::place_of_thread(), nullptr)) {}
  ~Unseated() { Seat::place_of_thread() = seat_; }
  Unseated(const Unseated&) = delete;
  Unseated& operator=(const Unseated&) = delete;

 private:
  Seat* seat_;
};

/// Begins and waits for what the calling thread's seat has not begun, before calls that take no place in a
/// queue.
inline void finish_queued_work() {
  Seat* seat = Seat::of_thread();
  if (seat != nullptr && !seat->is_empty()) seat->finish_alone();
}
/// Does the same before memory is freed; what fails is thrown when the thread next waits.
inline void finish_before_freeing() noexcept {
  Seat* seat = Seat::of_thread();
  if (seat != nullptr && !seat->is_empty()) seat->finish_alone_quietly();
}

/// Starts work(stream), or lets it wait in the calling thread's seat.
template <class Work>
void start_in_turn(Stream stream, Work work) {
  if (Seat* seat = Seat::of_thread()) {
    seat->add_call(std::move(work));
  } else {
    work(stream);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
