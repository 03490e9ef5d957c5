#pragma once

#include <memory>
#include <optional>

#include "models/posterior/form_policy.h"
#include "models/posterior/full_form.h"
#include "models/posterior/posterior.h"

namespace olrank {

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
  /// What observe() goes back to.
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
