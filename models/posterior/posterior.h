#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/covariance/covariance_checks.h"
#include "core/device/network_spec.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/covariance.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// The tangent factors of all observed pairs, winner then loser. Documents are not shared between pairs, as
/// their gradients belong to the parameters of the round. Copies share the pairs that both have, so that
/// threads can read one while another appends; only one copy may append.
class ObservedPairs {
 public:
  explicit ObservedPairs(const TangentShape& shape)
      : shape_(shape), values_(std::make_shared<AlignedVector<float>>()) {}

  std::int64_t pairs() const { return pairs_; }
  TangentFactors all() const { return {first_, 2 * pairs_}; }
  /// Pairs `first` to `first + count`.
  TangentFactors range(std::int64_t first, std::int64_t count) const {
    return {first_ + first * 2 * shape_.factors(), 2 * count};
  }
  void append(TangentFactors docs, std::span<const PreferencePair> pairs);
  /// Forgets the pairs from this number on, which no checkpoint has.
  void truncate(std::int64_t pairs);
  /// Counts the bytes of the pairs; up to twice as much is allocated.
  std::int64_t bytes() const { return static_cast<std::int64_t>(values_->size() * sizeof(float)); }

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  void make_room(std::int64_t pairs);

  TangentShape shape_;
  std::shared_ptr<AlignedVector<float>> values_;
  const float* first_ = nullptr;  // read by copies; only the copy that appends uses the vector
  std::int64_t pairs_ = 0;
  Lineage lineage_;
};

/// ‖g‖² from a document's factors.
double gradient_length_sq(const TangentShape& shape, const float* factors);

/// Copies the lower triangle of a matrix [size × size] to its upper one.
void mirror_lower(std::int64_t size, double* matrix);

/// Throws NumericError where a document of these pairs has more information than a covariance with λ takes
/// in: core/covariance/covariance_checks.h.
void require_information(const TangentShape& shape, double lambda, double scale, TangentFactors docs,
                         std::span<const PreferencePair> pairs);

/// The covariance that is kept alongside the one in use, to compare widths.
enum class ShadowCovariance { kNone, kFull };

/// At which parameters a round's pairs enter the covariance: those that made its list, or those that its
/// training ended at.
enum class ObserveAt { kBefore, kAfter };

/// They choose what is known about the parameters: a covariance, or an ensemble.
struct PosteriorSettings {
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;
  std::int64_t budget = 1000;
  ShadowCovariance shadow = ShadowCovariance::kNone;
  ObserveAt observe_at = ObserveAt::kBefore;
  double lambda = 10.0;
  std::int64_t members = 2;
  double noise_variance = 0.1;
  bool prior_noise = false;

  /// Whether a full covariance is kept alongside another one.
  bool has_shadow() const { return shadow == ShadowCovariance::kFull && covariance != Covariance::kFull; }

  static const Schema& schema();
};

template <>
struct EnumNames<ObserveAt> {
  static constexpr std::array values = names_in_order<ObserveAt>("before", "after");
};

template <>
struct EnumNames<ShadowCovariance> {
  static constexpr std::array values = names_in_order<ShadowCovariance>("none", "full");
};

/// It holds what is known about θ: A = λI + s Σ_s g_s g_sᵀ over observed pairs, or a part of it, each g_s
/// at the parameters of its round. Jia and Wang, "Learning Neural Ranking Models Online from Implicit User
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

  /// Finds w² without repair, for any number of threads at once; the caller checks the result's health.
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

/// Floating-point operations of a round that compares V documents and observes k pairs after n pairs.
double dual_operations(const TangentShape& shape, std::int64_t pairs, std::int64_t docs,
                       std::int64_t new_pairs);
double primal_operations(const TangentShape& shape, std::int64_t pairs, std::int64_t docs,
                         std::int64_t new_pairs);

/// Operations of computing A⁻¹ of n pairs at once.
double conversion_operations(const TangentShape& shape, std::int64_t pairs);

/// Where a covariance is kept, and how its memory grows there.
enum class PosteriorHome {
  kHost,         // L⁻¹ by row blocks; arrays double
  kDevice,       // L⁻¹ and the pairs' factors in place, by chunks; workspaces double
  kOlderDevice,  // all arrays double
};

/// The memory of a full covariance depends on these.
struct PosteriorLoad {
  TangentShape shape;
  PosteriorHome home = PosteriorHome::kHost;
  std::int64_t pairs = 0;  // n
  std::int64_t docs = 0;   // V, the most documents of a query
  std::int64_t added = 1;  // k, the most pairs of a round
};

/// Bytes that a full covariance of n pairs takes at most, including the moment in which it grows to that
/// size.
struct PosteriorBytes {
  double matrix = 0.0;     // L⁻¹ or A⁻¹
  double pairs = 0.0;      // the pairs' factors
  double workspace = 0.0;  // of a round, and on the host of computing A⁻¹

  double all() const { return matrix + pairs + workspace; }
};

/// Counts the bytes in dual form.
PosteriorBytes dual_bytes(const PosteriorLoad& load);
/// Counts them in primal form, which is computed after L⁻¹ was freed.
PosteriorBytes primal_bytes(const PosteriorLoad& load);
/// Counts them for the diagonal.
PosteriorBytes diagonal_bytes(const PosteriorLoad& load);
/// Counts them in orthonormal form, which only the host has: while it grows it is there twice.
PosteriorBytes orthonormal_bytes(const PosteriorLoad& load);
/// Counts the bytes of the inducing covariance with a dictionary of `budget` pairs, which has them once
/// that many were observed: more pairs take no more.
PosteriorBytes inducing_bytes(const PosteriorLoad& load, std::int64_t budget);

}  // namespace olrank
