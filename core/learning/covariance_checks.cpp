#include "core/learning/covariance_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {

double worst_residual(const CovarianceChecks& checks, std::int64_t parameters, std::int64_t pairs,
                      FunctionRef<double(std::span<const double>)> residual) {
  std::vector<double> probe(parameters);
  double worst = 0.0;
  for (int number = 0; number < checks.probes; ++number) {
    RngStream draws(make_key({.purpose = Purpose::kProbe}), static_cast<std::uint32_t>(pairs),
                    static_cast<std::uint32_t>(number));
    draws.unit_vector(probe);
    const double found = residual(probe);
    // A NaN stays the worst: no later residual compares above it.
    if (std::isnan(found) || found > worst) worst = found;
  }
  return worst;
}

double residual_norm(double lambda, double scale, std::span<const double> product,
                     std::span<const double> y, std::span<const double> v) {
  double sum = 0.0;
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double residual = lambda * y[k] + scale * product[k] - v[k];
    sum += residual * residual;
  }
  return std::sqrt(sum);
}

void DriftMonitor::check(const CovarianceName& name, FunctionRef<double()> drift,
                         FunctionRef<void(std::string_view)> rebuild) {
  unchecked_ = 0;
  double residual = drift();
  if (residual <= checks_.drift_bound) return;
  rebuild(fmt::format("its residual is {:.2g}", residual));
  residual = drift();
  if (residual <= checks_.drift_bound) return;
  throw_lost_precision(name, fmt::format("its residual is {:.2g}, above the bound of {:.2g}", residual,
                                         checks_.drift_bound));
}

}  // namespace olrank
