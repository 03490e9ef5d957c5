#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/network_spec.h"
#include "core/io/state_archive.h"
#include "core/ops/covariance.h"
#include "core/runtime/execution_context.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// One of the exact representations of A⁻¹ of the full covariance. FullPosterior owns the history and
/// checks the numbers.
class FullForm {
 public:
  FullForm(const TangentShape& shape, double lambda, double scale)
      : shape_(shape), lambda_(lambda), scale_(scale) {}
  virtual ~FullForm() = default;
  FullForm& operator=(const FullForm&) = delete;

  /// width_sq [docs × docs] = s ‖g_i − g_j‖²_{A⁻¹}.
  virtual WidthHealth widths(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                             std::span<double> width_sq) const = 0;
  /// Finds the widths, and keeps what makes observing pairs of these documents cheaper.
  virtual WidthHealth widths_for_update(ExecutionContext& context, const ObservedPairs& history,
                                        TangentFactors docs, std::span<double> width_sq) {
    return widths(context, history, docs, width_sq);
  }
  /// A copy of this form that no later pair changes.
  virtual std::unique_ptr<FullForm> freeze() const = 0;
  /// Observes the history's pairs from number `first` on, which are `pairs` of these documents. Throws
  /// NumericError where rounding or numbers that are not finite prevent that, and then has observed none if
  /// there are at most kObservedAtOnce.
  virtual void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
                       TangentFactors docs, std::span<const PreferencePair> pairs) = 0;
  static constexpr std::int64_t kObservedAtOnce = 128;
  /// Recomputes everything from the history. After a NumericError the form is invalid.
  virtual void rebuild(ExecutionContext& context, const ObservedPairs& history) = 0;
  /// solution = A⁻¹ v, both [p].
  virtual void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
                     std::span<double> solution) const = 0;

  virtual double log_det() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual void save(StateWriter& state) const = 0;
  /// The state is of this history's pairs.
  virtual void load(StateReader& state, const ObservedPairs& history) = 0;

 protected:
  FullForm(const FullForm&) = default;

  TangentShape shape_;
  double lambda_;
  double scale_;
};

/// `by_diagonal`: the primal form's widths take the diagonal of A⁻¹ alone.
std::unique_ptr<FullForm> make_full_form(CovarianceForm form, const TangentShape& shape, double lambda,
                                         double scale, bool by_diagonal);

/// The form by an orthonormal basis of the observed gradients, for features of very different scale.
std::unique_ptr<FullForm> make_orthonormal_form(const TangentShape& shape, double lambda, double scale);

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
