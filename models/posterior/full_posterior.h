#pragma once

#include <memory>

#include "core/learning/covariance_checks.h"
#include "models/posterior/form_policy.h"
#include "models/posterior/full_form.h"
#include "models/posterior/posterior.h"
#include "models/posterior/primal_form.h"

namespace olrank {

/// The full covariance, or the diagonal of its inverse. With form = "auto" it starts in dual form, by
/// pairs, and switches to primal form, by parameters, as FormPolicy says. Drift is checked and repaired as
/// core/learning/covariance_checks.h says.
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
  double drift(ExecutionContext& context) const override;
  std::int64_t negative_widths() const override { return negative_widths_; }
  std::string_view form() const override;
  std::int64_t bytes() const override { return history_.bytes() + form_->bytes(); }
  /// How often the covariance was rebuilt.
  std::int64_t rebuilds() const { return rebuilds_; }

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  FullPosterior(const FullPosterior& other);
  WidthHealth widths_of_diagonal(ExecutionContext& context, TangentFactors docs,
                                 std::span<double> width_sq) const;
  /// Like widths(), and keeps what makes observing pairs of these documents cheaper.
  WidthHealth widths_for_update(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq);
  CovarianceName name() const { return {form(), history_.pairs(), spec_.lambda}; }
  void rebuild(ExecutionContext& context, std::string_view why);
  void rebuild_form(ExecutionContext& context);
  void switch_to_primal(ExecutionContext& context);

  PosteriorSpec spec_;
  std::int64_t memory_;
  FormPolicy policy_;
  DriftMonitor monitor_;
  ObservedPairs history_;
  std::unique_ptr<FullForm> form_;
  bool is_dual_;  // form_ is a DualForm
  std::int64_t negative_widths_ = 0;
  std::int64_t rebuilds_ = 0;
};

}  // namespace olrank
