#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/learning/numeric_errors.h"
#include "core/runtime/function_ref.h"

// How covariances on CPU and device detect and repair numerical drift: an inverse that is updated in place
// loses precision. Its drift is measured every so many pairs; beyond the bound, or if squared widths turn
// out negative beyond rounding, it is rebuilt once from the observed pairs. If that does not help, the
// ranker stops with a NumericError.
namespace olrank {

struct CovarianceChecks {
  std::int64_t every = 512;   // observed pairs between two measurements; 0: never
  double drift_bound = 1e-4;  // the largest ‖A A⁻¹ v − v‖/‖v‖ without a rebuild
  int probes = 2;             // random vectors v per measurement
};

/// The largest residual(v) of the probes, NaN if one is NaN. The probes are unit vectors [parameters] that
/// depend on `pairs` alone.
double worst_residual(const CovarianceChecks& checks, std::int64_t parameters, std::int64_t pairs,
                      FunctionRef<double(std::span<const double> probe)> residual);

/// ‖A y − v‖ for A = λI + s Σ g gᵀ, given Σ g (g·y).
double residual_norm(double lambda, double scale, std::span<const double> product,
                     std::span<const double> y, std::span<const double> v);

/// What negative squared widths prove, as a clause.
inline constexpr std::string_view kIndefinite = "rounding has made it indefinite";

/// Counts observed pairs and keeps the drift within its bound.
class DriftMonitor {
 public:
  explicit DriftMonitor(const CovarianceChecks& checks) : checks_(checks) {}

  void add(std::int64_t pairs) { unchecked_ += pairs; }
  bool is_due() const { return checks_.every > 0 && unchecked_ >= checks_.every; }
  /// After a rebuild by other means.
  void restart() { unchecked_ = 0; }
  /// Measures the drift; beyond the bound calls rebuild(why) and measures again. Throws NumericError if the
  /// rebuilt covariance is beyond the bound too.
  void check(const CovarianceName& name, FunctionRef<double()> drift,
             FunctionRef<void(std::string_view why)> rebuild);

  std::int64_t unchecked() const { return unchecked_; }
  void set_unchecked(std::int64_t pairs) { unchecked_ = pairs; }

 private:
  CovarianceChecks checks_;
  std::int64_t unchecked_ = 0;  // pairs since the last measurement
};

}  // namespace olrank
