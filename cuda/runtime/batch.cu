#include "cuda/runtime/batch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cuda/engine/device_network.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kCopyThreads = 256;
constexpr std::size_t kMostSmallBytes = 256 * 1024;  // larger ones are worth a copy of their own
constexpr std::size_t kBytesOfBlock = 16 * kCopyThreads;

/// Pinned memory has the same address on the device.
struct SmallCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

}  // namespace

template <>
inline constexpr bool reaches_host<Values<SmallCopy>> = true;
template <>
inline constexpr bool reaches_host<SharedLaunch<Values<SmallCopy>>> = true;

namespace {

struct Sixteen {
  std::uint64_t words[2];
};

// A thread copies 16 bytes, as one where both places allow it.
__device__ void small_copy_kernel(const Grid& grid, const SmallCopy& copy) {
  const std::size_t first = grid.block.x * kBytesOfBlock + threadIdx.x * sizeof(Sixteen);
  if (first >= copy.bytes) return;
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from)) % 16 == 0;
  if (aligned && first + sizeof(Sixteen) <= copy.bytes) {
    *reinterpret_cast<Sixteen*>(copy.to + first) = *reinterpret_cast<const Sixteen*>(copy.from + first);
    return;
  }
  for (std::size_t i = first; i < min(copy.bytes, first + sizeof(Sixteen)); ++i) copy.to[i] = copy.from[i];
}

__device__ void small_fill_kernel(const Grid& grid, std::byte* to, int value, std::size_t bytes) {
  const std::size_t first = grid.block.x * kBytesOfBlock + threadIdx.x * sizeof(Sixteen);
  for (std::size_t i = first; i < min(bytes, first + sizeof(Sixteen)); ++i)
    to[i] = static_cast<std::byte>(value);
}

Blocks grid_of(std::size_t bytes) {
  return {static_cast<std::int64_t>((bytes + kBytesOfBlock - 1) / kBytesOfBlock)};
}

}  // namespace

/// The seats of one device, and the stream in which they work.
class Batch : public DeviceBatch, public std::enable_shared_from_this<Batch> {
 public:
  Batch(int device, std::size_t planned, std::chrono::milliseconds patience)
      : device_(device),
        planned_(planned),
        patience_(patience),
        arrived_(kMostSharedGrids * kArrivedStride) {}

  std::unique_ptr<DeviceSeat> take_seat() override {
    use_device(device_);
    if (Seat::of_thread() != nullptr) return nullptr;
    return std::make_unique<Seat>(shared_from_this());
  }

  void enter(Seat& seat) {
    const std::lock_guard lock(mutex_);
    seats_.push_back(&seat);
    ++entered_;
  }
  void leave(Seat& seat) {
    const std::lock_guard lock(mutex_);
    std::erase(seats_, &seat);
    changed_.notify_all();
  }
  void meet(Seat& seat, bool in_step);
  void finish_alone(Seat& seat) noexcept {
    const auto failure = failure_of([&] {
      for (auto& work : std::exchange(seat.queue_, {})) work->start(stream_.get());
    });
    if (failure) seat.failure_ = failure;
    ++seat.meetings_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Trials that are made at the same time begin together.
  static constexpr std::chrono::milliseconds kGathering{500};

  /// Begins work and waits for it; returns what was thrown last.
  template <class Begin>
  std::exception_ptr failure_of(Begin begin) noexcept {
    const Unseated direct;
    std::exception_ptr failure;
    try {
      begin();
    } catch (...) {
      failure = std::current_exception();
    }
    try {
      stream_.wait();  // also after a failure, since what has begun uses memory that is freed then
    } catch (...) {
      failure = std::current_exception();
    }
    return failure;
  }
  bool all_wait() const {
    return entered_ >= planned_ &&
           std::ranges::all_of(seats_, [](const Seat* seat) { return seat->waits_ || !seat->expected_; });
  }
  void serve(std::unique_lock<std::mutex>& lock);
  void begin(std::span<Seat* const> seats);
  std::size_t start_first_of(std::span<QueuedWork* const> works);

  int device_;
  std::size_t planned_;
  std::size_t entered_ = 0;
  std::chrono::milliseconds patience_;
  OwnedStream stream_;
  DeviceArray<unsigned> arrived_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Seat*> seats_;
  bool serving_ = false;
  Clock::time_point latest_;  // arrival or end of service
};

void Batch::meet(Seat& seat, bool in_step) {
  std::unique_lock lock(mutex_);
  seat.waits_ = seat.expected_ = true;
  seat.in_step_ = in_step;
  latest_ = Clock::now();
  while (seat.waits_) {
    const auto until = latest_ + (entered_ < planned_ ? std::max(patience_, kGathering) : patience_);
    if (serving_) {
      changed_.wait(lock);
    } else if (all_wait() || Clock::now() >= until) {
      planned_ = 0;
      serve(lock);
    } else {
      changed_.wait_until(lock, until);
    }
  }
}

/// Begins the work of those who wait, and waits for it: of those who are not in step, where there are any.
/// Seats that do not wait now are not expected at the next meeting.
void Batch::serve(std::unique_lock<std::mutex>& lock) {
  const bool all_in_step =
      std::ranges::none_of(seats_, [](const Seat* seat) { return seat->waits_ && !seat->in_step_; });
  std::vector<Seat*> waiting;
  for (Seat* seat : seats_) {
    if (seat->waits_ && seat->in_step_ == all_in_step) waiting.push_back(seat);
    seat->expected_ = seat->waits_;
  }
  serving_ = true;
  lock.unlock();
  const std::exception_ptr failure = failure_of([&] { begin(waiting); });
  for (Seat* seat : waiting) seat->queue_.clear();
  lock.lock();
  serving_ = false;
  latest_ = Clock::now();
  for (Seat* seat : waiting) {
    seat->waits_ = false;
    ++seat->meetings_;
    if (failure) seat->failure_ = failure;
  }
  changed_.notify_all();
}

/// Each seat's works begin in their order; a seat whose work fails to begin begins no more. Of the works
/// that are next, those begin first that no other seat will soon have, so that the seats come to the same
/// work.
void Batch::begin(std::span<Seat* const> seats) {
  constexpr std::size_t kSoon = 12;
  std::vector<std::size_t> next(seats.size(), 0);
  const auto later_seats = [&](QueuedWork::Key key) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const auto& queue = seats[i]->queue_;
      for (std::size_t at = next[i]; at < std::min(queue.size(), next[i] + kSoon); ++at) {
        if (queue[at]->key() != key) continue;
        if (at > next[i]) ++count;
        break;
      }
    }
    return count;
  };
  std::vector<QueuedWork*> works;
  std::vector<std::size_t> owners;
  for (;;) {
    QueuedWork* chosen = nullptr;
    std::size_t fewest = seats.size() + 1;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      if (next[i] == seats[i]->queue_.size()) continue;
      QueuedWork* work = seats[i]->queue_[next[i]].get();
      if (chosen != nullptr && work->key() == chosen->key()) continue;
      const std::size_t later = work->key() == nullptr ? 0 : later_seats(work->key());
      if (later >= fewest) continue;
      chosen = work;
      fewest = later;
    }
    if (chosen == nullptr) return;
    works.clear();
    owners.clear();
    for (std::size_t i = 0; i < seats.size(); ++i) {
      if (next[i] == seats[i]->queue_.size()) continue;
      QueuedWork* work = seats[i]->queue_[next[i]].get();
      const bool alike = chosen->key() != nullptr && work->key() == chosen->key();
      if (work != chosen && !alike) continue;
      works.push_back(work);
      owners.push_back(i);
      ++next[i];
    }
    for (std::size_t first = 0; first < works.size();) {
      std::size_t count = works.size() - first;
      try {
        count = start_first_of(std::span(works).subspan(first));
      } catch (...) {
        for (std::size_t k = first; k < works.size(); ++k) {
          Seat& seat = *seats[owners[k]];
          seat.failure_ = std::current_exception();
          next[owners[k]] = seat.queue_.size();
        }
      }
      first += count;
    }
  }
}

/// Starts as many of these alike works as can begin as one; returns how many.
std::size_t Batch::start_first_of(std::span<QueuedWork* const> works) {
  if (works.size() == 1) {
    works.front()->start(stream_.get());
    return 1;
  }
  if (works.front()->meets())
    fill_bytes(stream_.get(), arrived_.data(), 0,
               static_cast<std::size_t>(arrived_.size()) * sizeof(unsigned));
  return works.front()->start_with(works, stream_.get(), arrived_.data());
}

Seat*& Seat::place_of_thread() {
  thread_local Seat* place = nullptr;
  return place;
}

Seat* Seat::of_thread() {
  return place_of_thread();
}

Seat::Seat(std::shared_ptr<Batch> batch) : batch_(std::move(batch)) {
  batch_->enter(*this);
  place_of_thread() = this;
}

Seat::~Seat() {
  finish_before_freeing();
  place_of_thread() = nullptr;
  batch_->leave(*this);
}

void Seat::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > kMostSmallBytes) {
    add_call([=](Stream stream) { copy_bytes(stream, to, from, bytes); });
  } else {
    launch(kernel<small_copy_kernel, kCopyThreads>, grid_of(bytes), 0, nullptr,
           SmallCopy{static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes});
  }
}

void Seat::fill(void* to, int value, std::size_t bytes) {
  if (bytes > kMostSmallBytes) {
    add_call([=](Stream stream) { fill_bytes(stream, to, value, bytes); });
  } else {
    launch(kernel<small_fill_kernel, kCopyThreads>, grid_of(bytes), 0, nullptr, static_cast<std::byte*>(to),
           value, bytes);
  }
}

void Seat::meet(bool in_step) {
  if (!queue_.empty()) batch_->meet(*this, in_step);
  throw_failure();
}

void Seat::finish_alone() {
  batch_->finish_alone(*this);
  throw_failure();
}

void Seat::finish_alone_quietly() noexcept {
  batch_->finish_alone(*this);
}

void Seat::throw_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

std::shared_ptr<DeviceBatch> make_batch(int device, std::int64_t seats,
                                        std::chrono::milliseconds patience) {
  use_device(device);
  return std::make_shared<Batch>(device, static_cast<std::size_t>(seats), patience);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
