#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/ops/inverse_factor.h"
#include "models/posterior/inducing_dictionary.h"

namespace olrank {

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
