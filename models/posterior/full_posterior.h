#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/device/network_spec.h"
#include "core/io/state_archive.h"
#include "core/ops/covariance.h"
#include "core/ops/tangent_factors.h"
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

/// Decides when a full covariance switches from the dual to the primal form: one rule, on CPU and device.
///
/// By operations: a round costs dual_operations() or primal_operations(), V the query's documents and
/// kUsualPairs new pairs. What rounds so far cost beyond the primal form is the excess. The switch pays
/// once the excess exceeds its own cost, conversion_operations(): p²n + p³. The total work then is at most
/// twice that of the best moment. The decision depends on the feedback alone, not on which queries were
/// ranked.
///
/// By memory: with n pairs the dual form takes dual_bytes() and the primal form primal_bytes(), all that is
/// allocated included: growth, the pairs' factors, workspaces. The switch frees L⁻¹ first. If the dual form
/// no longer fits, the covariance switches early; if the primal form does not fit either, or `form` is
/// fixed, observing throws.
class FormPolicy {
 public:
  /// The memory of a covariance.
  struct Room {
    std::int64_t bytes = 0;  // that may be used; 0: no limit
    PosteriorHome home = PosteriorHome::kHost;
    std::int64_t most_docs = 0;   // of a query, if that is known
    double beside = 0.0;          // bytes that others take of it
    double beside_per_doc = 0.0;  // bytes that others take for each document of a pair
    std::int64_t docs = 0;        // that pairs can have
  };

  FormPolicy(const TangentShape& shape, CovarianceForm form, const Room& room)
      : shape_(shape), form_(form), room_(room) {}

  /// To be called while the form is dual, before a query of `docs` documents adds `added` to `pairs`
  /// observed pairs: returns whether they are to be observed in primal form. Throws Error if no form fits.
  bool switches(std::int64_t pairs, std::int64_t added, std::int64_t docs);
  /// Whether the primal form fits with this many pairs.
  bool primal_fits(std::int64_t pairs) const;
  /// Whether so many bytes fit next to what others take.
  bool fits(double bytes, std::int64_t pairs) const { return room_.bytes <= 0 || bytes <= usable(pairs); }

  /// Operations beyond the primal form so far.
  double excess() const { return excess_; }
  void set_excess(double operations) { excess_ = operations; }

 private:
  static constexpr std::int64_t kUsualPairs = 4;

  /// Bytes for the covariance, with so many pairs.
  double usable(std::int64_t pairs) const {
    return static_cast<double>(room_.bytes) - room_.beside -
           room_.beside_per_doc * static_cast<double>(std::min(2 * pairs, room_.docs));
  }
  PosteriorLoad load(std::int64_t pairs, std::int64_t added, std::int64_t docs) const {
    return {shape_, room_.home, pairs, std::max(docs, room_.most_docs), added};
  }

  TangentShape shape_;
  CovarianceForm form_;
  Room room_;
  double excess_ = 0.0;
};

/// The full covariance, or the diagonal of its inverse. With form = "auto" it starts in dual form, by
/// pairs, and switches to primal form, by parameters, as FormPolicy says. Drift is checked and repaired as
/// core/covariance/covariance_checks.h says: a full covariance that loses its digits goes on in orthonormal
/// form if that fits into memory, else it is computed afresh in its own form.
class FullPosterior : public Posterior {
 public:
  explicit FullPosterior(const PosteriorSpec& spec);

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override;
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::shared_ptr<const Posterior> freeze() const override;
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override;

  std::int64_t pairs() const override { return history_.pairs(); }
  double log_det() const override { return form_->log_det(); }
  std::int64_t bytes() const override { return history_.bytes() + form_->bytes(); }
  /// How often the covariance was rebuilt.
  std::int64_t rebuilds() const { return rebuilds_; }

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  FullPosterior(const FullPosterior& other);
  /// observe() goes back to this.
  struct Earlier {
    std::int64_t pairs = 0;
    double excess = 0.0;
    std::int64_t unchecked = 0;
    std::int64_t rebuilds = 0;
    CovarianceForm kept = CovarianceForm::kPrimal;
    std::unique_ptr<FullForm> form;  // null where the present one fails as a whole, or memory is short
    bool left = false;               // the form has taken the pairs in
  };
  void take_in(ExecutionContext& context, TangentFactors docs, std::span<const PreferencePair> pairs,
               Earlier& earlier);
  void go_back(ExecutionContext& context, Earlier earlier, std::int64_t added);
  std::unique_ptr<FullForm> made(CovarianceForm form) const;
  /// Throws Error if the orthonormal form has no memory for so many more pairs.
  void require_room(std::int64_t added) const;
  void switch_to_primal(ExecutionContext& context, Earlier& earlier);
  /// Replaces the form by one computed from the history: the orthonormal one, or this one without room for
  /// it. NumericError, with the form unchanged, if that is not possible.
  void rebuild(ExecutionContext& context, std::string_view why, CovarianceForm without_room);
  void rebuild(ExecutionContext& context, std::string_view why) {
    rebuild(context, why, spec_.is_dual() ? CovarianceForm::kDual : CovarianceForm::kPrimal);
  }
  double measured_drift(ExecutionContext& context) const override;
  /// width_error() of w² = vᵀA⁻¹v, computed as `width_sq` or, without it, as vᵀy.
  double error_along(ExecutionContext& context, std::span<const double> v,
                     std::optional<double> width_sq) const;

  FormPolicy policy_;
  ObservedPairs history_;
  std::unique_ptr<FullForm> form_;  // as spec_.form says; primal for the diagonal of the inverse
  std::int64_t rebuilds_ = 0;
};

}  // namespace olrank
