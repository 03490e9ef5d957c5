#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/io/state_archive.h"
#include "core/learning/covariance_checks.h"
#include "core/online/preference_pair.h"
#include "core/ops/pair_width.h"
#include "core/ops/tangent_factors.h"
#include "models/posterior_settings.h"

namespace olrank {

/// A = λI + s Σ_s g_s g_sᵀ of networks with this shape.
struct PosteriorSpec {
  TangentShape shape;
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;
  std::int64_t budget = 1000;  // D, of the inducing covariance
  double lambda = 10.0;        // λ
  double scale = 1.0;          // s: 1/m in the paper protocol, 1 in the reference protocol
  CovarianceChecks checks;
  std::int64_t memory = 0;  // bytes it may use; 0: available_memory()
};

/// What is known about θ: A = λI + s Σ_s g_s g_sᵀ over observed pairs, or a part of it, each g_s at the
/// parameters of its round. Jia and Wang, "Learning Neural Ranking Models Online from Implicit User
/// Feedback", WWW 2022, state the full form and compute the diagonal one.
class Posterior {
 public:
  Posterior() = default;
  virtual ~Posterior() = default;
  Posterior(const Posterior&) = delete;
  Posterior& operator=(const Posterior&) = delete;

  /// w²_ij = s · ‖g_i − g_j‖²_{A⁻¹}, [docs × docs], for documents with factors at the current parameters.
  /// If rounding has made squared widths negative, rebuilds the covariance; NumericError if that does not
  /// help.
  virtual void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) = 0;

  /// The same without repair, for any number of threads at once; the caller checks the result's health.
  virtual WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                             std::span<double> width_sq) const = 0;
  /// A copy of this posterior that no later pair changes. Large arrays are shared until a later pair
  /// overwrites them. Null on a device.
  virtual std::shared_ptr<const Posterior> freeze() const = 0;

  /// Adds pairs of these documents to A.
  virtual void observe(ExecutionContext& context, TangentFactors docs,
                       std::span<const PreferencePair> pairs) = 0;

  /// Pairs observed so far.
  virtual std::int64_t pairs() const = 0;
  /// log det(A)/det(λI).
  virtual double log_det() const = 0;
  /// The estimated relative error of squared widths; 0 if nothing can drift.
  virtual double drift(ExecutionContext& context) const = 0;
  /// Pairs of documents whose computed w² was negative so far.
  virtual std::int64_t negative_widths() const = 0;
  /// How widths are computed now: "dual", "primal" or "orthonormal" of the full covariance, else the
  /// covariance's name.
  virtual std::string_view form() const = 0;
  virtual std::int64_t bytes() const = 0;
  /// Whether bytes() depends on how memory has grown in this run, so that it is no result.
  virtual bool bytes_are_of_the_run() const { return false; }

  /// A loaded posterior continues to the same bits as the saved one.
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

/// The share of `memory` bytes that the full covariance, or the inverse, of these settings may use: half if
/// a shadow needs the same again.
std::int64_t covariance_memory(const PosteriorSettings& settings, std::int64_t memory);

/// Throws InvalidArgument, with the sizes and what would fit, if the covariance does not fit into memory.
std::unique_ptr<Posterior> make_posterior(const PosteriorSpec& spec);

}  // namespace olrank
