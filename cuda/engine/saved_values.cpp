#include "cuda/engine/saved_values.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

SavedValues::SavedValues(const std::byte* first, std::size_t bytes)
    : next_(first),
      left_(bytes),
      piece_bytes_(std::min(kMostBytes, (bytes + kTurns * kPieces - 1) / (kTurns * kPieces))),
      memory_(kPieces * piece_bytes_) {
  start_copies();
}

SavedValues::~SavedValues() {
  try {
    stream_.wait();
  } catch (const Error&) {  // the device is gone
  }
  for (Piece& piece : pieces_) piece.used.wait(true, std::memory_order_acquire);
}

void SavedValues::start_copies() {
  for (std::size_t number = 0; number < kPieces && left_ > 0; ++number) {
    Piece& piece = pieces_[number];
    if (piece.used.load(std::memory_order_acquire)) continue;
    piece.bytes = std::min(left_, piece_bytes_);
    copy_bytes(stream_.get(), memory_of(number), next_, piece.bytes);
    next_ += piece.bytes;
    left_ -= piece.bytes;
  }
}

void SavedValues::pass_copies_on(const std::function<void(ArrivedBytes)>& sink) {
  for (std::size_t number = 0; number < kPieces; ++number) {
    Piece& piece = pieces_[number];
    if (piece.bytes == 0) continue;
    piece.used.store(true, std::memory_order_relaxed);
    const auto let_go = [used = &piece.used](const void*) {
      used->store(false, std::memory_order_release);
      used->notify_all();
    };
    sink({{memory_of(number), std::exchange(piece.bytes, 0)},
          std::shared_ptr<const void>(memory_of(number), let_go)});
  }
}

bool SavedValues::pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) {
  if (lost_) throw Error("The rest of a checkpoint could not be fetched from the GPU.");
  for (;;) {
    if (wait) stream_.wait();
    if (!stream_.idle()) return false;
    pass_copies_on(sink);
    if (fetched_ != nullptr) sink({*fetched_, std::move(fetched_)});
    if (left_ == 0) return true;
    if (wait) pieces_.front().used.wait(true, std::memory_order_acquire);
    start_copies();
    if (!wait) return false;
  }
}

void SavedValues::release() {
  // Whatever happens, nothing is read from there later.
  const std::size_t left = std::exchange(left_, 0);
  lost_ = left > 0;
  stream_.wait();
  if (left == 0) return;
  auto fetched = std::make_shared<std::vector<std::byte>>(left);
  copy_to_host(next_, std::span(*fetched));
  fetched_ = std::move(fetched);
  lost_ = false;
}

std::shared_ptr<ByteArrival> DeviceSource::start(std::size_t first, std::size_t bytes) const {
  auto values = std::make_shared<SavedValues>(first_ + first, bytes);
  latest_.set(values);
  return values;
}

LatestSave::~LatestSave() {
  try {
    release();
  } catch (...) {  // the device is gone, or memory is full
  }
}

void LatestSave::release() const {
  if (const auto values = values_.lock()) values->release();
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
