#include "cuda/engine/resident_pairs.h"

#include <array>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/ops/gradient_products.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

void ResidentPairs::append(Stream stream, const FactorRows& docs, const PreferencePair* pairs,
                           std::int64_t count) {
  const std::int64_t numbers = 2 * shape_.factors();
  if (rows_.moves_to_hold((pairs_ + count) * numbers)) saves_.release();
  rows_.reserve(stream, (pairs_ + count) * numbers, pairs_ * numbers);
  static_assert(sizeof(PreferencePair) == 2 * sizeof(std::int32_t));
  gather_pairs(stream, docs, reinterpret_cast<const std::int32_t*>(pairs), count,
               rows_.data() + pairs_ * numbers);
  pairs_ += count;
}

void ResidentPairs::replay(
    Stream stream,
    FunctionRef<void(const FactorRows& docs, const PreferencePair* pairs, std::int64_t count)> observe) {
  constexpr std::int64_t kBatch = kMostReplayed / 2;
  const std::vector<PreferencePair> places = pairs_of_rows(0, kBatch);
  const DeviceArray<PreferencePair> on_device{std::span<const PreferencePair>(places)};
  for (std::int64_t first = 0; first < pairs_; first += kBatch) {
    const std::int64_t count = std::min(kBatch, pairs_ - first);
    observe(range(first, count), on_device.data(), count);
  }
  OwnedStream::wait_for(stream);  // `on_device` is read until the last batch is done
}

void ResidentPairs::products(Stream stream, std::int64_t columns, const double* v, double factor,
                             const PairColumns& of_pairs) {
  const FactorRows rows = all();
  of_docs_.reserve(stream, columns * rows.docs);
  workspace_.reserve(stream, gradient_products_workspace(shape_, rows.docs, columns));
  gradient_products(stream, shape_, rows, v, workspace_.data(), of_docs_.data(), nullptr, columns);
  pair_differences(stream, pairs_, columns, of_docs_.data(), factor, of_pairs);
}

void ResidentPairs::sum(Stream stream, std::int64_t columns, const PairColumns& weights, double* sums) {
  const FactorRows rows = all();
  of_docs_.reserve(stream, columns * rows.docs);
  workspace_.reserve(stream, gradient_sum_workspace(shape_, rows.docs, columns));
  pair_weights(stream, pairs_, columns, weights, of_docs_.data());
  gradient_sum(stream, shape_, rows, of_docs_.data(), workspace_.data(), sums, nullptr, columns);
}

void ResidentPairs::save(StateWriter& state) const {
  saves_.put(state, "device.pairs", rows_.data(), pairs_ * 2 * shape_.factors());
}

void ResidentPairs::load(Stream stream, StateReader& state) {
  const std::vector<float> rows = state.get<float>("device.pairs");
  const auto numbers = static_cast<std::size_t>(2 * shape_.factors());
  if (rows.size() % numbers != 0)
    state.fail("The observed pairs do not fit this network: their size is not a multiple of a pair's.");
  pairs_ = static_cast<std::int64_t>(rows.size() / numbers);
  saves_.change();
  rows_.reserve(stream, std::ssize(rows));
  OwnedStream::wait_for(stream);
  copy_to_device(std::span<const float>(rows), rows_.data());
}

/// Brings values of a checkpoint to the host while rounds go on: a few pinned pieces at a time, in a stream
/// of its own, where they wait for no seat of a batch. The values may be appended to, and nothing else,
/// until release() or the end.
class SavedValues : public ByteArrival {
 public:
  /// `first` and what precedes it has been written and waited for.
  SavedValues(const std::byte* first, std::size_t bytes)
      : next_(first),
        left_(bytes),
        piece_bytes_(std::min(kMostBytes, (bytes / (kTurns * kPieces * kAligned) + 1) * kAligned)),
        memory_(kPieces * piece_bytes_) {
    const Unseated direct;
    start_copies();
  }
  /// Waits for copies, and until the pieces are no longer used.
  ~SavedValues() override {
    const Unseated direct;
    try {
      stream_.wait();
    } catch (const Error&) {  // the device is gone
    }
    for (Piece& piece : pieces_) piece.used.wait(true, std::memory_order_acquire);
  }

  bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) override {
    const Unseated direct;
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
  /// Fetches what is left, as the values are about to change or to move.
  void release() {
    const Unseated direct;
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

 private:
  static constexpr std::size_t kPieces = 4;
  static constexpr std::size_t kMostBytes = std::size_t{2} << 20;  // of a piece
  static constexpr std::size_t kTurns = 2;                         // of all pieces, about
  static constexpr std::size_t kAligned = 64;                      // pieces hold whole numbers

  struct Piece {
    std::size_t bytes = 0;  // being copied
    std::atomic<bool> used{false};
  };

  std::byte* memory_of(std::size_t number) { return memory_.data() + number * piece_bytes_; }
  void start_copies() {
    for (std::size_t number = 0; number < kPieces && left_ > 0; ++number) {
      Piece& piece = pieces_[number];
      if (piece.used.load(std::memory_order_acquire)) continue;
      piece.bytes = std::min(left_, piece_bytes_);
      copy_bytes(stream_.get(), memory_of(number), next_, piece.bytes);
      next_ += piece.bytes;
      left_ -= piece.bytes;
    }
  }
  void pass_copies_on(const std::function<void(ArrivedBytes)>& sink) {
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

  const std::byte* next_;
  std::size_t left_;
  std::size_t piece_bytes_;
  OwnedStream stream_;
  PinnedBytes memory_;
  std::array<Piece, kPieces> pieces_;
  std::shared_ptr<std::vector<std::byte>> fetched_;  // by release()
  bool lost_ = false;                                // release() has failed
};

std::shared_ptr<ByteArrival> DeviceSource::start(std::size_t first, std::size_t bytes) const {
  auto values = std::make_shared<SavedValues>(first_ + first, bytes);
  saves_.set(values);
  return values;
}

// A checkpoint that is on its way stays the latest save.
void DeviceSource::pass(std::size_t first, std::size_t bytes,
                        const std::function<void(std::span<const std::byte>)>& sink) const {
  SavedValues(first_ + first, bytes)
      .pass_on([&](const ArrivedBytes& arrived) { sink(arrived.bytes); }, true);
}

ArraySaves::~ArraySaves() {
  try {
    release();
  } catch (...) {  // the device is gone, or memory is full
  }
}

void ArraySaves::release() const {
  if (const auto values = latest_.lock()) values->release();
}

namespace {

constexpr std::size_t kSectionAlignment = 16;

/// Writes arrays one after another, or only counts their bytes.
class Sections {
 public:
  explicit Sections(std::byte* host) : host_(host) {}

  template <class T>
  std::size_t add(std::span<const T> values) {
    const std::size_t at = size_;
    if (host_ != nullptr && !values.empty()) std::memcpy(host_ + at, values.data(), values.size_bytes());
    size_ += (values.size_bytes() + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::byte* host_;
  std::size_t size_ = 0;
};

PackedUpdate lay_out(Sections& sections, const DeviceUpdate& update, std::span<const std::int32_t> ends,
                     const std::byte* device) {
  const auto place = [&]<class T>(std::span<const T> values) {
    return reinterpret_cast<const T*>(device + sections.add(values));
  };
  return {.noise_round = place(std::span(&update.noise_round, 1)),
          .pairs = place(update.pairs),
          .new_docs = place(update.new_docs),
          .doc_numbers = place(update.doc_numbers),
          .terms = place(update.terms),
          .observations = place(update.observations),
          .examined = place(update.examined),
          .clicks = place(update.clicks),
          .order = place(update.order),
          .sample_docs = place(update.sample.docs),
          .sample_terms = place(update.sample.terms),
          .sample_sources = place(update.sample.sources),
          .ends = place(ends)};
}

}  // namespace

PackedUpdate Packet::send(Stream stream, const DeviceUpdate& update, std::span<const std::int32_t> ends) {
  Sections counted(nullptr);
  lay_out(counted, update, ends, nullptr);
  if (counted.size() > host_.size()) host_ = PinnedBytes(2 * counted.size());
  device_.reserve(stream, std::ssize(counted));
  Sections written(host_.data());
  const PackedUpdate packed = lay_out(written, update, ends, device_.data());
  copy_bytes(stream, device_.data(), host_.data(), written.size());
  return packed;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
