#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "core/device/device_network.h"
#include "core/io/mapped_memory.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"
#include "cuda/engine/growing_array.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/tangent_factors.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

class SavedValues;

/// The saves of an array, whose latest may not be complete. Member of the array's owner, behind the array.
class ArraySaves {
 public:
  ArraySaves() = default;
  ~ArraySaves();
  ArraySaves(ArraySaves&&) = default;
  ArraySaves& operator=(ArraySaves&&) = delete;

  /// Saves the array's first numbers, which stay as they are until release() or change().
  template <class T>
  void put(StateWriter& state, std::string_view name, const T* first, std::int64_t count) const;
  void set(const std::shared_ptr<SavedValues>& values) const { latest_ = values; }
  /// It has to be called before values move.
  void release() const;
  /// It has to be called before values that are there change.
  void change() {
    release();
    lineage_.renew();
  }

 private:
  Lineage lineage_;  // of the values
  mutable std::weak_ptr<SavedValues> latest_;
};

/// Where values in device memory are.
class DeviceSource : public GrowingSource {
 public:
  DeviceSource(const void* first, const ArraySaves& saves)
      : first_(static_cast<const std::byte*>(first)), saves_(saves) {}

  void pass(std::size_t first, std::size_t bytes,
            const std::function<void(std::span<const std::byte>)>& sink) const override;
  std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const override;

 private:
  const std::byte* first_;
  const ArraySaves& saves_;
};

template <class T>
void ArraySaves::put(StateWriter& state, std::string_view name, const T* first, std::int64_t count) const {
  state.put_growing<T>(name, lineage_, DeviceSource(first, *this), count);
}

/// The tangent factors of all observed pairs, winner then loser, each at the parameters of its round. A
/// full covariance is rebuilt from them.
class ResidentPairs {
 public:
  explicit ResidentPairs(const TangentShape& shape) : shape_(shape) {}

  std::int64_t pairs() const { return pairs_; }
  std::int64_t bytes() const { return bytes_of(rows_, of_docs_, workspace_); }
  FactorRows all() { return range(0, pairs_); }
  FactorRows range(std::int64_t first, std::int64_t count) {
    return {rows_.data() + first * 2 * shape_.factors(), 2 * count, shape_.factors()};
  }
  /// Pairs [count] on the device, of `docs`.
  void append(Stream stream, const FactorRows& docs, const PreferencePair* pairs, std::int64_t count);

  /// Calls observe(docs, pairs on the device, count) for batches of all pairs so far, in order.
  void replay(
      Stream stream,
      FunctionRef<void(const FactorRows& docs, const PreferencePair* pairs, std::int64_t count)> observe);
  /// The most documents of a batch of replay().
  static constexpr std::int64_t kMostReplayed = 128;

  /// of_pairs = factor · g_s·v of every pair, for vectors v [columns × p].
  void products(Stream stream, std::int64_t columns, const double* v, double factor,
                const PairColumns& of_pairs);
  /// sums [columns × p] = Σ_s weights g_s.
  void sum(Stream stream, std::int64_t columns, const PairColumns& weights, double* sums);

  void save(StateWriter& state) const;
  void load(Stream stream, StateReader& state);

 private:
  TangentShape shape_;
  MappedArray<float> rows_;  // [2 · pairs × factors]
  std::int64_t pairs_ = 0;
  // products() and sum() use these. Drift checks call both often, and freeing waits for the whole device.
  GrowingArray<double> of_docs_;
  GrowingArray<double> workspace_;
  ArraySaves saves_;  // of rows_
};

/// Where an update's arrays are on the device until the next update.
struct PackedUpdate {
  const std::uint32_t* noise_round = nullptr;
  const PreferencePair* pairs = nullptr;
  const std::int64_t* new_docs = nullptr;
  const std::int64_t* doc_numbers = nullptr;
  const DeviceUpdate::Term* terms = nullptr;
  const PairObservation* observations = nullptr;
  const std::int32_t* examined = nullptr;
  const std::uint8_t* clicks = nullptr;
  const std::int32_t* order = nullptr;
  const std::int64_t* sample_docs = nullptr;
  const PairTerm* sample_terms = nullptr;
  const SampledTerm* sample_sources = nullptr;
  const std::int32_t* ends = nullptr;  // [2]: the numbers of examined documents and of observations so far
};

/// Copies a round's update to the device in one transfer. The one before must have completed.
class Packet {
 public:
  PackedUpdate send(Stream stream, const DeviceUpdate& update, std::span<const std::int32_t> ends);

 private:
  PinnedBytes host_;
  GrowingArray<std::byte> device_;
};

/// The first size of the series 32, 64, … that is at least `needed`; steps are an eighth, rounded up to 32.
inline std::int64_t padded_size(std::int64_t needed) {
  constexpr std::int64_t kStep = 32;
  std::int64_t size = kStep;
  while (size < needed) size += (size / 8 + kStep - 1) / kStep * kStep;
  return size;
}

/// Indices are padded with −1, which has these bytes.
inline constexpr int kPaddingByte = 0xFF;

/// Numbers of what a history holds, or room for so many.
struct PairSizes {
  std::int64_t docs = 0;
  std::int64_t terms = 0;
  std::int64_t observations = 0;
  std::int64_t impressions = 0;
  std::int64_t examined = 0;  // documents of all impressions

  friend bool operator==(const PairSizes&, const PairSizes&) = default;
};

/// Documents on the device, the folded pairs between them, and the pairs of each document. Sizes are padded
/// ones: a pair whose first document is −1 adds nothing.
struct IndexedPairs {
  GrowingArray<float> values;  // [docs × features]
  GrowingArray<PairTerm> terms;
  GrowingArray<std::int32_t> offsets;  // of PairIncidence, like the next one
  GrowingArray<std::int32_t> ends;
  GrowingArray<std::int32_t> words;  // workspace

  /// Makes room and keeps what `kept` says. Returns whether an array that graphs point into has moved.
  bool reserve(Stream stream, std::int64_t features, const PairSizes& wanted, const PairSizes& kept,
               std::int64_t least_words) {
    bool moved = values.reserve(stream, wanted.docs * features, kept.docs * features);
    moved |= terms.reserve(stream, wanted.terms, kept.terms, kPaddingByte);
    moved |= offsets.reserve(stream, wanted.docs + 1);
    moved |= ends.reserve(stream, 2 * wanted.terms);
    words.reserve(stream, std::max(incidence_workspace(wanted.docs, wanted.terms), least_words));
    return moved;
  }

  /// Finds the pairs of each document; to be called again after pairs have come or changed places.
  void index(Stream stream, const PairSizes& sizes) {
    find_incidence(stream, terms.data(), sizes.terms, sizes.docs, words.data(),
                   {offsets.data(), ends.data()});
  }

  PairHistoryView view(const PairSizes& sizes) const {
    return {values.data(),
            sizes.docs,
            terms.data(),
            sizes.terms,
            {const_cast<std::int32_t*>(offsets.data()), const_cast<std::int32_t*>(ends.data())}};
  }

  std::int64_t bytes() const { return bytes_of(values, terms, offsets, ends, words); }
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
