#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/online/retraining.h"
#include "core/runtime/execution_context.h"

// How covariances on CPU and device detect and repair numerical drift. Their inverses are updated in place
// and subtract large numbers from each other, which loses digits of the widths. The relative error of
// squared widths is estimated every so many pairs; beyond the bound, or if squared widths turn out negative
// beyond rounding, the covariance is rebuilt from the observed pairs. If that does not help, the ranker
// refuses with a NumericError.
namespace olrank {

struct CovarianceChecks {
  std::int64_t every = 64;    // observed pairs between two measurements, at least; 0: never
  double drift_bound = 1e-4;  // the largest relative error of squared widths without a rebuild
  int vectors = 2;            // random vectors per measurement
  int pairs = 5;              // observed pairs per measurement
};

/// The largest s‖g‖²/λ of a gradient that a full covariance takes in. Rounding adds (ε‖g‖)² s to directions
/// of which the gradient says nothing, here a hundred-thousandth of λ.
inline constexpr double kLargestInformation = 1e26;

/// Throws NumericError if s‖g‖² of an observed document exceeds that share of λ or is not finite.
void require_information(double lambda, double information);

/// The relative error of w² = vᵀA⁻¹v, computed as `width_sq`, from y ≈ A⁻¹v. The yardstick is
/// 2 vᵀy − yᵀAy = vᵀA⁻¹v − eᵀAe with e = y − A⁻¹v: the error of y enters it squared, while it enters vᵀy
/// once. Independent of the scale of A. At least 0; infinite or NaN if no digit is right.
double width_error(double width_sq, double v_y, double y_a_y);

/// Where a check measures; functions of the sizes alone.
struct DriftProbes {
  std::vector<double> vectors;      // unit vectors [any × parameters]
  std::vector<std::int64_t> pairs;  // numbers of observed pairs
};
DriftProbes drift_probes(const CovarianceChecks& checks, std::int64_t parameters, std::int64_t pairs);

/// The largest relative error of squared widths in random directions, which mostly see what is not observed
/// yet, or the median one of observed pairs, where most digits cancel; whichever is larger. The median,
/// since a pair of nearly equal documents has a width without digits in any form.
double drift_of(std::span<const double> along_vectors, std::span<const double> of_pairs);

/// drift_of() the probes, measured one by one.
double measure_drift(const CovarianceChecks& checks, std::int64_t parameters, std::int64_t pairs,
                     FunctionRef<double(std::span<const double> vector)> error_along,
                     FunctionRef<double(std::int64_t pair)> error_of_pair);

/// e_k with |v_k| the largest: what widths ask of a covariance's diagonal instead of v.
std::vector<double> unit_at_largest(std::span<const double> v);

/// yᵀAy for A = λI + s Σ g gᵀ, given g·y of every pair.
double quadratic_form(double lambda, double scale, std::span<const double> y,
                      std::span<const double> products);

/// The clause says what negative squared widths prove.
inline constexpr std::string_view kIndefinite = "rounding has made it indefinite";

/// Warns of drift beyond the bound, once for a covariance and its copies made later.
class DriftWarning {
 public:
  void give(const CovarianceName& name, double drift) const;

 private:
  mutable bool given_ = false;
};

/// Counts observed pairs and keeps the drift within its bound. A measurement costs in proportion to the
/// pairs observed so far, so the distance between two grows with them: an eighth of them at least.
class DriftMonitor {
 public:
  explicit DriftMonitor(const CovarianceChecks& checks) : checks_(checks) {}

  /// `observed` counts them.
  void add(std::int64_t pairs, std::int64_t observed);
  bool is_due() const { return due_; }
  /// Whether this check may cost more than others: one of four, which is about one whenever the pairs have
  /// doubled.
  bool is_thorough() const { return thorough_; }
  /// Whether adding so many pairs makes a check due, with `observed` after them.
  bool will_be_due(std::int64_t pairs, std::int64_t observed) const;
  /// Starts again after a rebuild by other means.
  void restart() { set_unchecked(0); }
  /// Measures the drift; beyond the bound warns, calls rebuild(why) and measures again. Throws NumericError
  /// if the rebuilt covariance is beyond the bound too.
  void check(const CovarianceName& name, FunctionRef<double()> drift,
             FunctionRef<void(std::string_view why)> rebuild);
  /// Warns once if the drift is beyond the bound.
  void warn(const CovarianceName& name, double drift) const;

  std::int64_t unchecked() const { return counted_; }
  void set_unchecked(std::int64_t pairs);

 private:
  std::int64_t interval(std::int64_t observed) const;
  /// Whether adding so many pairs passes a multiple of `distance`.
  bool passes(std::int64_t distance, std::int64_t pairs) const {
    return (counted_ + pairs) / distance > counted_ / distance;
  }

  CovarianceChecks checks_;
  std::int64_t counted_ = 0;  // pairs since the latest full cycle of checks
  bool due_ = false;
  bool thorough_ = false;
  DriftWarning warning_;
};

}  // namespace olrank
