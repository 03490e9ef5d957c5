#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/runtime/execution_context.h"
#include "models/posterior/full_form.h"

namespace olrank {

/// By an orthonormal basis Q [r × p] of the observed gradients, r ≤ min(n, p), for features of very
/// different scale:
///
/// A = λ(I − QᵀQ) + Qᵀ L Lᵀ Q, and ‖g‖²_{A⁻¹} = ‖g − QᵀQg‖²/λ + ‖L⁻¹Qg‖².
///
/// The dual form factorises K + λI and the primal one A, so their widths lose the digits of A's condition
/// number. Here L is a factor of the pairs' coordinates themselves, updated by rotations; nothing is
/// squared before it is factorised, and widths lose half as many digits. Gradients are taken relative to
/// the query's first document, and widths from differences where M would cancel. A query costs 4rp
/// operations per document, twice the primal form's where r = p.
class OrthonormalForm : public FullForm {
 public:
  using FullForm::FullForm;

  WidthHealth widths(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::unique_ptr<FullForm> freeze() const override {
    shared_ = true;
    return std::make_unique<OrthonormalForm>(*this);
  }
  void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
               TangentFactors docs, std::span<const PreferencePair> pairs) override;
  void rebuild(ExecutionContext& context, const ObservedPairs& history) override;
  void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
             std::span<double> solution) const override;

  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override {
    return rank_ * (parameters_ + rank_) * static_cast<std::int64_t>(sizeof(double));
  }
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  using Matrix = AlignedVector<double>;

  const double* basis() const { return basis_ ? basis_->data() : nullptr; }
  const double* root() const { return root_ ? root_->data() : nullptr; }
  /// Makes room for at least so many basis vectors, and L writable.
  void make_room(std::int64_t vectors);
  /// Takes in pairs `first` to `first + count`. With finite gradients nothing can fail.
  void take(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
            std::int64_t count);
  /// Splits vectors [count × p] into coordinates [count × rank_], which are added to unless null, and the
  /// rest.
  void project(ExecutionContext& context, std::int64_t count, double* vectors, double* coordinates,
               std::int64_t stride) const;

  std::int64_t parameters_ = shape_.parameters();
  std::int64_t rank_ = 0;          // r
  std::shared_ptr<Matrix> basis_;  // Q; rows are appended, and a copy reads those that it knows
  std::shared_ptr<Matrix> root_;   // L, lower triangle, rows stride_ numbers apart
  std::int64_t stride_ = 0;        // the rows of both that fit into memory
  mutable bool shared_ = false;    // L, with a frozen form
  double log_det_ = 0.0;           // log det(A)/det(λI)
};

/// Adds pairs to a Cholesky factor by rotations, so that nothing is squared before it is factorised.
class RootUpdate {
 public:
  /// L Lᵀ ← L Lᵀ + c cᵀ with L [n × n] lower triangular, rows `stride` numbers apart, n = c.size().
  void add(std::span<const double> c, double* l, std::int64_t stride);

 private:
  std::vector<double> cosine_;
  std::vector<double> sine_;
};

}  // namespace olrank
