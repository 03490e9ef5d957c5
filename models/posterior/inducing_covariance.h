#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/covariance/dictionary_policy.h"
#include "core/io/state_archive.h"
#include "core/ops/blas.h"
#include "core/ops/inverse_factor.h"
#include "core/runtime/execution_context.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// The lower triangle of a square matrix that grows at its end, in rows stride() numbers apart; zeros are
/// above the diagonal until somebody writes there. Copies share the rows that both have, so that threads
/// can read one while another appends to the original. Only one of the copies may grow.
class LowerTriangle {
 public:
  LowerTriangle() : values_(std::make_shared<AlignedVector<double>>()) {}
  /// Zeros.
  explicit LowerTriangle(std::int64_t size);

  std::int64_t size() const { return size_; }
  std::int64_t stride() const { return stride_; }
  double* row(std::int64_t i) { return values_->data() + i * stride_; }
  const double* row(std::int64_t i) const { return values_->data() + i * stride_; }
  double* data() { return values_->data(); }
  const double* data() const { return values_->data(); }
  /// Counts the bytes of the rows as they are stored, without unused capacity.
  std::int64_t bytes() const;

  /// More rows, which the caller writes.
  void grow(std::int64_t size);
  /// Forgets the rows from this number on.
  void truncate(std::int64_t size) { size_ = size; }
  /// A copy of these numbers in a matrix of `size` rows, zeros elsewhere.
  LowerTriangle extended(std::int64_t size) const;

  void save(StateWriter& state, std::string_view name) const;
  void load(StateReader& state, std::string_view name, std::int64_t size);

 private:
  std::shared_ptr<AlignedVector<double>> values_;
  std::int64_t size_ = 0;
  std::int64_t stride_ = 0;
};

/// The dictionary Z of the inducing covariance: observed pairs with their factors, and C Cᵀ = s K_ZZ. A
/// gradient's coordinates z = C⁻¹ s k_Z are those of its part in the span of Z, in an orthonormal basis.
/// Pairs that are added leave earlier coordinates as they are. Copies share what both have; only one may
/// grow.
class InducingDictionary {
 public:
  InducingDictionary(const TangentShape& shape, double scale)
      : shape_(shape), scale_(scale), factors_(shape) {}

  std::int64_t members() const { return factors_.pairs(); }
  TangentFactors factors() const { return factors_.all(); }
  std::int64_t bytes() const;

  /// kernel [members × docs] = s k_Z, rows `docs.docs` numbers apart.
  void find_kernel(ExecutionContext& context, TangentFactors docs, double* kernel) const;
  /// kernel [members × pairs] of pairs, winner then loser.
  void find_pair_kernel(ExecutionContext& context, TangentFactors pairs, double* kernel) const;
  /// x [members × columns] ← C⁻¹ x, or C⁻ᵀ x.
  void project(ExecutionContext& context, std::int64_t columns, double* x,
               blas::Transpose transpose = blas::Transpose::kNo) const;
  /// R [rows × rows] with R C = F, `rows` the first members: columns [rows × columns] of Fᵀ ← those of Rᵀ.
  void divide(std::int64_t rows, std::int64_t columns, double* f) const;

  /// Decides by `policy` which of these pairs enter, and lets them. `pairs` are of `docs`; coordinates
  /// [members × pairs], rows `stride` numbers apart, are theirs; `residual` and `magnitudes` as for
  /// DictionaryPolicy::admit().
  Admission add(const DictionaryPolicy& policy, TangentFactors docs, std::span<const PreferencePair> pairs,
                std::span<const double> coordinates, std::int64_t stride,
                std::span<const double> magnitudes, std::span<double> residual);
  /// Adds pairs of which nothing is known yet, winner then loser.
  Admission add(ExecutionContext& context, const DictionaryPolicy& policy, TangentFactors pairs);
  /// Forgets the members from this number on.
  void truncate(std::int64_t members) {
    factors_.truncate(members);
    c_.truncate(members);
  }

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  TangentShape shape_;
  double scale_;
  ObservedPairs factors_;
  LowerTriangle c_;
};

/// It holds what the observed pairs say within the span of a dictionary: B = λI + T with T = Σ_s z_s z_sᵀ,
/// and RᵀR = C⁻ᵀ(I/λ − B⁻¹)C⁻¹, so that ‖g‖²_{A⁻¹} = k/λ − ‖Rκ‖² with κ = s k_Z in one product. Pairs
/// append rows to R; every DictionaryPolicy::kRows rows R is factorised again from T, to its triangle.
/// Copies share what both have; only one may observe.
class InducingCovariance {
 public:
  explicit InducingCovariance(double lambda) : lambda_(lambda) { make_room(); }

  /// Rows of R.
  std::int64_t rows() const { return triangle_.size() + appended_; }
  /// Rows that can be appended before factorise().
  std::int64_t room() const { return DictionaryPolicy::kRows - appended_; }
  /// log det(B)/det(λI).
  double log_det() const { return log_det_; }
  std::int64_t bytes() const;

  /// y [rows × columns] = R κ, κ [members × columns].
  void apply(ExecutionContext& context, std::int64_t members, std::int64_t columns, const double* kappa,
             double* y) const;
  /// x [count × members] = y R, y [count × rows].
  void apply_from_right(ExecutionContext& context, std::int64_t members, std::int64_t count,
                        const double* y, double* x) const;
  /// zᵀ T z.
  double quadratic_form(std::span<const double> z) const;

  /// Appends rows and the coordinates of as many pairs, both [count × members], and adds to log_det().
  void append(std::int64_t members, std::int64_t count, const double* rows, const double* coordinates,
              double log_det);
  /// Forgets everything, so that what renews it has the memory.
  void clear();
  /// Computes R from T. Throws NumericError, and then knows nothing, if rounding prevents it.
  void factorise(ExecutionContext& context, const InducingDictionary& dictionary);
  /// Computes R from another T, of all members.
  void factorise(ExecutionContext& context, const InducingDictionary& dictionary, LowerTriangle t);

  void save(StateWriter& state) const;
  void load(StateReader& state, std::int64_t members);

 private:
  /// Makes room for kRows rows, each with room for as many new members.
  void make_room();

  double lambda_;
  LowerTriangle t_;         // without the appended pairs
  InverseFactor triangle_;  // R of these pairs
  std::int64_t appended_ = 0;
  std::int64_t stride_ = 0;
  std::shared_ptr<AlignedVector<double>> rows_;         // [kRows × stride]
  std::shared_ptr<AlignedVector<double>> coordinates_;  // [kRows × stride]
  double log_det_ = 0.0;
};

/// t [n × n] ← t + x xᵀ, lower triangle, with x [n × columns].
void add_outer_products(ExecutionContext& context, std::int64_t columns, const double* x,
                        std::int64_t stride_x, LowerTriangle& t);

}  // namespace olrank
