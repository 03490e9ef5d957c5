#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/pair_width.h"
#include "core/ops/tangent_factors.h"
#include "core/protocol.h"
#include "models/posterior_settings.h"

namespace olrank {

/// When a posterior looks at its own numbers, and what it tolerates.
struct PosteriorChecks {
  std::int64_t every = 512;   // observed pairs between two checks of the drift; 0: never
  double drift_bound = 1e-4;  // relative residual of A · A⁻¹ above which the factors are rebuilt
};

/// What a posterior is made of.
struct PosteriorSpec {
  NetworkShape shape;
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;
  double lambda = 10.0;  // λ
  double scale = 1.0;    // s: 1/m in the paper protocol, 1 in the reference protocol
  PosteriorChecks checks;
  std::int64_t memory = 0;        // bytes it may take; 0: what available_memory() says
  std::int64_t usual_docs = 120;  // V and k of a usual round, for the choice of form
  std::int64_t usual_pairs = 4;
};

/// What the settings ask for: s = 1/m in the paper protocol, 1 in the reference protocol.
PosteriorSpec posterior_spec(const NetworkShape& shape, const PosteriorSettings& settings,
                             ProtocolName protocol);

/// What is known about θ: A = λI + s Σ_s g_s g_sᵀ over observed pairs, or its diagonal, each g_s at the
/// parameters of its round. Jia and Wang, "Learning Neural Ranking Models Online from Implicit User
/// Feedback", WWW 2022, state the full form and compute the diagonal one.
class Posterior {
 public:
  Posterior() = default;
  virtual ~Posterior() = default;
  Posterior(const Posterior&) = delete;
  Posterior& operator=(const Posterior&) = delete;

  /// w²_ij = s · ‖g_i − g_j‖²_{A⁻¹}, [docs × docs], for documents with factors at the current parameters.
  /// Where rounding has eaten the digits the factors are rebuilt; if that does not help, NumericError.
  virtual void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) = 0;

  /// The same without repair, for any number of threads at once: the caller judges how far to trust them.
  virtual WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                             std::span<double> width_sq) const = 0;
  /// This posterior as it stands now, which no later pair changes. Large numbers are shared until a later
  /// pair has to write over them.
  virtual std::shared_ptr<const Posterior> freeze() const = 0;

  /// Takes pairs of these documents into A.
  virtual void observe(ExecutionContext& context, TangentFactors docs,
                       std::span<const PreferencePair> pairs) = 0;

  /// Pairs observed so far.
  virtual std::int64_t pairs() const = 0;
  /// log det(A)/det(λI).
  virtual double log_det() const = 0;
  /// ‖A A⁻¹ v − v‖/‖v‖ for a random v, the largest of a few; 0 where nothing can drift.
  virtual double drift(ExecutionContext& context) const = 0;
  /// Pairs of documents whose w² came out below zero so far.
  virtual std::int64_t negative_widths() const = 0;
  /// "dual", "primal", "diagonal", "diagonal-of-inverse", "none": how widths are computed now.
  virtual std::string_view form() const = 0;
  virtual std::int64_t bytes() const = 0;

  /// A loaded posterior goes on to the same bits as the saved one.
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

/// Throws InvalidArgument, with the sizes and what would fit, for a form that cannot fit into memory.
std::unique_ptr<Posterior> make_posterior(const PosteriorSpec& spec);

}  // namespace olrank
