#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/io/growing_values.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Brings values of a checkpoint to the host while rounds go on: a few pinned pieces at a time, in a stream
/// of its own. The values may be appended to, and nothing else, until release() or the end.
class SavedValues : public ByteArrival {
 public:
  /// `first` and what precedes it has been written and waited for.
  SavedValues(const std::byte* first, std::size_t bytes);
  /// Waits for copies, and until the pieces are no longer used.
  ~SavedValues() override;

  bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) override;
  /// Fetches what is left, as the values are about to change or to move.
  void release();

 private:
  static constexpr std::size_t kPieces = 4;
  static constexpr std::size_t kMostBytes = std::size_t{2} << 20;  // of a piece
  static constexpr std::size_t kTurns = 2;                         // of all pieces, at least

  struct Piece {
    std::size_t bytes = 0;  // being copied
    std::atomic<bool> used{false};
  };

  std::byte* memory_of(std::size_t number) { return memory_.data() + number * piece_bytes_; }
  void start_copies();
  void pass_copies_on(const std::function<void(ArrivedBytes)>& sink);

  const std::byte* next_;
  std::size_t left_;
  std::size_t piece_bytes_;
  OwnedStream stream_;
  PinnedBytes memory_;
  std::array<Piece, kPieces> pieces_;
  std::shared_ptr<std::vector<std::byte>> fetched_;  // by release()
  bool lost_ = false;                                // release() has failed
};

/// The latest save of an array, which may not be complete. Member of the array's owner, behind the array.
class LatestSave {
 public:
  LatestSave() = default;
  ~LatestSave();
  LatestSave(LatestSave&&) = default;
  LatestSave& operator=(LatestSave&&) = delete;

  void set(const std::shared_ptr<SavedValues>& values) { values_ = values; }
  /// To be called before values change or move.
  void release() const;

 private:
  std::weak_ptr<SavedValues> values_;
};

/// Where values in device memory are.
class DeviceSource : public GrowingSource {
 public:
  template <class T>
  DeviceSource(const T* first, LatestSave& latest)
      : first_(reinterpret_cast<const std::byte*>(first)), latest_(latest) {}

  void copy(std::size_t first, std::span<std::byte> to) const override { copy_to_host(first_ + first, to); }
  std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const override;

 private:
  const std::byte* first_;
  LatestSave& latest_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
