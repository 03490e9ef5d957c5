#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/inducing_dictionary.h"
#include "cuda/engine/posterior_status.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

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
  /// x [padded members] = Rᵀ y.
  void apply_transposed(std::int64_t padded_members, const double* y, double* x);
  /// zᵀ T z for z [padded members]; waits.
  double quadratic_form(std::int64_t padded_members, const double* z);

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
  GrowingArray<double> of_form_;
  GrowingArray<double> factor_;       // of find_root()
  GrowingArray<double> information_;  // I/λ − B⁻¹
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
