#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/covariance/covariance_checks.h"
#include "core/device/posterior_spec.h"
#include "core/io/state_fields.h"
#include "core/online/preference_pair.h"
#include "core/ops/pair_width.h"
#include "core/ops/tangent_factors.h"
#include "models/posterior/posterior_settings.h"

namespace olrank {

/// What is known about θ: A = λI + s Σ_s g_s g_sᵀ over observed pairs, or a part of it, each g_s at the
/// parameters of its round. Jia and Wang, "Learning Neural Ranking Models Online from Implicit User
/// Feedback", WWW 2022, state the full form and compute the diagonal one.
class Posterior : public Stateful {
 public:
  explicit Posterior(const PosteriorSpec& spec);
  ~Posterior() override = default;
  Posterior& operator=(const Posterior&) = delete;

  /// w²_ij = s · ‖g_i − g_j‖²_{A⁻¹}, [docs × docs], for documents with factors at the current parameters.
  /// If rounding has made squared widths negative, rebuilds the covariance; NumericError if that does not
  /// help.
  virtual void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) = 0;

  /// The same without repair, for any number of threads at once; the caller checks the result's health.
  virtual WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                             std::span<double> width_sq) const = 0;
  /// A copy of this posterior that no later pair changes. Large arrays are shared until a later pair
  /// overwrites them.
  virtual std::shared_ptr<const Posterior> freeze() const = 0;

  /// Adds pairs of these documents to A.
  virtual void observe(ExecutionContext& context, TangentFactors docs,
                       std::span<const PreferencePair> pairs) = 0;

  /// Pairs observed so far.
  virtual std::int64_t pairs() const = 0;
  /// log det(A)/det(λI).
  virtual double log_det() const = 0;
  /// The estimated relative error of squared widths; 0 if nothing can drift. Warns once if it is beyond the
  /// bound.
  virtual double drift(ExecutionContext& context) const;
  /// Pairs of documents whose computed w² was negative so far.
  std::int64_t negative_widths() const { return negative_widths_; }
  virtual const PosteriorSpec& spec() const { return spec_; }
  virtual std::int64_t bytes() const = 0;

 protected:
  Posterior(const Posterior&) = default;
  CovarianceName name() const { return {spec_.name(), pairs(), spec_.lambda}; }
  virtual double measured_drift(ExecutionContext&) const { return 0.0; }

  PosteriorSpec spec_;
  DriftMonitor monitor_;
  std::int64_t negative_widths_ = 0;
};

/// The share of `memory` bytes that the full covariance, or the inverse, of these settings may use: half if
/// a shadow needs the same again.
std::int64_t covariance_memory(const PosteriorSettings& settings, std::int64_t memory);

/// Throws InvalidArgument, with the sizes and what would fit, if the covariance does not fit into memory.
std::unique_ptr<Posterior> make_posterior(const PosteriorSpec& spec);

}  // namespace olrank
