#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/covariance/dictionary_policy.h"
#include "core/io/state_archive.h"
#include "core/ops/tangent_factors.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/engine/resident_posterior.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A matrix in double on the device that grows at its end and is 0 beyond what was written, so that
/// products may take padded() sides: few shapes, and rows on multiples of 16 bytes.
class GrowingMatrix {
 public:
  static constexpr std::int64_t kPadding = 64;
  static std::int64_t padded(std::int64_t side) { return (side + kPadding - 1) / kPadding * kPadding; }

  /// The most rows and columns that it will have.
  GrowingMatrix(std::int64_t most_rows, std::int64_t most_columns)
      : most_rows_(padded(most_rows)), most_columns_(padded(most_columns)) {}

  /// Room for padded() sides. What does not fit moves into at least twice as many rows or columns.
  void reserve(Stream stream, std::int64_t rows, std::int64_t columns) {
    if (padded(rows) <= rows_ && padded(columns) <= stride_) return;
    GrowingMatrix larger(most_rows_, most_columns_);
    larger.rows_ = grown(rows_, rows, most_rows_);
    larger.stride_ = grown(stride_, columns, most_columns_);
    larger.values_ = DeviceArray<double>(larger.rows_ * larger.stride_);
    larger.clear(stream);
    copy_matrix(stream, rows_, stride_, {values_.data(), stride_}, larger.data(), larger.stride_);
    std::swap(*this, larger);  // freeing the old memory waits for the copy
  }
  void clear(Stream stream) { clear_rows(stream, 0, rows_); }
  void clear_rows(Stream stream, std::int64_t first, std::int64_t end) {
    if (first < end) clear_numbers(stream, row(first), (end - first) * stride_);
  }

  operator PlacedOperand() const { return {values_.data(), stride_}; }
  operator PlacedMatrix() const { return {values_.data(), stride_}; }
  PlacedOperand transposed() const { return {values_.data(), stride_, true}; }
  std::int64_t stride() const { return stride_; }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }
  double* row(std::int64_t i) { return values_.data() + i * stride_; }
  std::int64_t bytes() const { return values_.bytes(); }

  /// The first rows and columns; to be called once the stream has finished.
  void save(StateWriter& state, std::string_view name, std::int64_t rows, std::int64_t columns) const {
    std::vector<double> values(rows * columns);
    for (std::int64_t i = 0; i < rows; ++i)
      copy_to_host(values_.data() + i * stride_, std::span(values).subspan(i * columns, columns));
    state.put(name, values);
  }
  void load(Stream stream, StateReader& state, std::string_view name, std::int64_t rows,
            std::int64_t columns) {
    std::vector<double> values(rows * columns);
    state.get_into(name, std::span(values));
    reserve(stream, rows, columns);
    clear(stream);
    OwnedStream::wait_for(stream);
    for (std::int64_t i = 0; i < rows; ++i)
      copy_to_device(std::span<const double>(values).subspan(i * columns, columns), row(i));
  }

 private:
  static std::int64_t grown(std::int64_t before, std::int64_t needed, std::int64_t most) {
    return padded(needed) <= before ? before : std::max(padded(needed), std::min(2 * before, most));
  }

  std::int64_t most_rows_;
  std::int64_t most_columns_;
  std::int64_t rows_ = 0;
  std::int64_t stride_ = 0;
  DeviceArray<double> values_;
};

/// New pairs next to a dictionary: what add() has to know to take them in.
struct ProjectedPairs {
  FactorRows rows;                 // winner then loser
  std::int64_t count = 0;          // of pairs
  std::int64_t members = 0;        // of the dictionary before them
  const double* kernel = nullptr;  // κ [padded members × count]
  double* coordinates = nullptr;   // z = C⁻¹κ, likewise, with room for the members that they bring
  const double* solved = nullptr;  // C⁻ᵀz, transposed: [count × padded members]
};

/// add() found these, on the host.
struct AddedPairs {
  std::vector<double> residual;    // before any of them entered, [count × count]
  std::vector<double> magnitudes;  // of DictionaryPolicy::admit()
  Admission admission;
  /// G Gᵀ = the residual among the pairs that entered, and G⁻¹: [entered × entered].
  std::vector<double> factor;
  std::vector<double> inverse;
};

/// The dictionary Z of the inducing covariance on the device: observed pairs with their factors, and C⁻¹
/// with C Cᵀ = s K_ZZ. The host decides which pairs enter. All sides are padded as GrowingMatrix pads them,
/// with zeros. Works in the stream of `products`.
class InducingDictionary {
 public:
  InducingDictionary(const TangentShape& shape, double scale, std::int64_t budget, Products& products);

  std::int64_t members() const { return pairs_.pairs(); }
  std::int64_t padded_members() const { return GrowingMatrix::padded(members()); }
  ResidentPairs& pairs() { return pairs_; }
  std::int64_t bytes() const;

  /// kernel [padded members × docs] = s k_Z, and of_docs [docs × docs], lower triangle, = s g·g' unless it
  /// is null.
  void find_kernel(const FactorRows& docs, double* of_docs, double* kernel);
  /// x [padded members × pairs] = z of each pair, winner then loser, rows `stride` numbers apart.
  void find_coordinates(const FactorRows& pairs, double* x, std::int64_t stride);
  /// Starts what add() waits for, for at most kMostPairsPerBatch pairs; what it returns is valid until the
  /// next call.
  ProjectedPairs project_pairs(const FactorRows& pairs);
  /// Decides by `policy` which of the latest pairs enter, and lets them: completes their coordinates and
  /// appends to C⁻¹. Waits.
  AddedPairs add(const DictionaryPolicy& policy, const ProjectedPairs& pairs);
  /// zᵀz of the latest pairs, [count × count], after add().
  std::span<const double> gram() const { return gram_; }
  /// C⁻¹.
  GrowingMatrix& inverse() { return inverse_; }

  /// Forgets all members and keeps their memory.
  void clear();
  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  /// kernel [padded members × pairs] of at most kMostPairsPerBatch pairs, which lie in kernel_ then.
  void find_pair_kernel(const FactorRows& pairs, double* of_docs);
  void append(const ProjectedPairs& pairs, const AddedPairs& added);
  Stream stream() const { return products_->stream(); }

  TangentShape shape_;
  double scale_;
  std::int64_t budget_;
  Products* products_;
  ResidentPairs pairs_;              // Z
  GrowingMatrix inverse_;            // C⁻¹
  DeviceArray<double> differences_;  // [2 · kMostPairsPerBatch × kMostPairsPerBatch]: winners less losers
  GrowingArray<double> of_docs_;
  GrowingArray<double> both_;
  GrowingArray<double> kernel_;
  GrowingArray<double> coordinates_;
  GrowingArray<double> solved_;
  GrowingArray<double> product_;
  GrowingArray<double> weights_;
  GrowingArray<PreferencePair> entered_;
  std::vector<double> gram_;
};

/// It holds what the observed pairs say within the span of a dictionary, on the device: B = λI + T with T =
/// Σ z zᵀ, and RᵀR = C⁻ᵀ(I/λ − B⁻¹)C⁻¹. Pairs append rows to R; every DictionaryPolicy::kRows rows R is
/// computed from T again, by a library. Sides are padded as GrowingMatrix pads them.
class InducingCovariance {
 public:
  InducingCovariance(double lambda, const DictionaryPolicy& policy, Products& products);

  /// Rows of R.
  std::int64_t rows() const { return settled_ + appended_; }
  std::int64_t padded_rows() const { return GrowingMatrix::padded(rows()); }
  /// There are that many and no more, padded, while a dictionary has `members`.
  std::int64_t most_rows(std::int64_t members) const {
    return GrowingMatrix::padded(members + DictionaryPolicy::kRows);
  }
  /// Rows that can be appended before factorise().
  std::int64_t room() const { return DictionaryPolicy::kRows - appended_; }
  const CovarianceStatus* status() const { return status_.get(); }
  std::int64_t bytes() const;

  /// y [padded rows × columns] = factor · R κ, κ [padded members × columns].
  void apply(std::int64_t padded_members, std::int64_t columns, const double* kernel, double factor,
             double* y);
  /// x [padded members × columns] = Rᵀ y.
  void apply_transposed(std::int64_t padded_members, std::int64_t columns, const double* y, double* x);
  /// zᵀ T z = Σ left · right of each column, over padded members and kRows rows. left begins with z, and
  /// the rest of both is written.
  void quadratic_form(std::int64_t padded_members, std::int64_t columns, double* left, double* right);

  /// Starts what append() needs of new pairs. The dictionary's add() comes next, and then append(), which
  /// takes the pairs in unless rounding has made the covariance indefinite: the status says so, too.
  void begin_append(const ProjectedPairs& pairs);
  bool append(InducingDictionary& dictionary, const ProjectedPairs& pairs, const AddedPairs& added);
  /// Makes room for a dictionary of so many members, about whose pairs R says nothing yet.
  void make_room(std::int64_t members);
  /// T takes in the appended pairs, and R is computed from it. Returns, as the status says, whether
  /// rounding has let it; otherwise nothing may be appended until another factorisation succeeds. Waits.
  bool factorise(InducingDictionary& dictionary);
  /// Another T, 0 for the caller to fill, of all members of a dictionary; then R is computed from it.
  GrowingMatrix& new_information(std::int64_t members);
  bool factorise_information(InducingDictionary& dictionary);

  void save(StateWriter& state, std::int64_t members) const;
  void load(StateReader& state, std::int64_t members);

 private:
  /// D⁻¹ with D Dᵀ = I + the covariance of the new pairs; empty if rounding has made it indefinite.
  std::vector<double> inverse_corner(const ProjectedPairs& pairs, const AddedPairs& added,
                                     std::span<const double> of_coordinates);
  /// R from T, whose lower triangle is read. Returns whether rounding has let it.
  bool find_root(InducingDictionary& dictionary);
  bool renew_root(InducingDictionary& dictionary);  // with its status
  void add_appended(std::int64_t padded_members);
  void set_status(bool failed) { status_.set({log_det_, failed ? 1 : 0}); }
  Stream stream() const { return products_->stream(); }

  double lambda_;
  Products* products_;
  std::int64_t settled_ = 0;  // rows of R that were computed from T
  std::int64_t appended_ = 0;
  double log_det_ = 0.0;
  GrowingMatrix t_;  // without the appended pairs
  GrowingMatrix r_;
  GrowingMatrix coordinates_;  // of the appended pairs, [members × kRows]
  PosteriorStatus status_;
  GrowingArray<double> applied_;   // R κ of new pairs
  GrowingArray<double> returned_;  // Rᵀ of it, transposed
  GrowingArray<double> product_;
  GrowingArray<double> weights_;
  GrowingArray<double> factor_;       // of find_root()
  GrowingArray<double> information_;  // I/λ − B⁻¹
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
