#include "core/covariance/covariance_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "core/random/rng_stream.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

// Pairs are counted from 0 again after so many measurements.
constexpr std::int64_t kCycle = 8;

/// The worse of two errors; a NaN is the worst.
double worse(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

std::string text_of_drift(double drift) {
  return drift < 1.0 ? fmt::format("squared widths have a relative error of {:.2g}", drift)
                     : "squared widths have no correct digit";
}

}  // namespace

void require_information(double lambda, double information) {
  if (information <= kLargestInformation * lambda) return;
  throw_error<NumericError>(
      "A document's gradient has the squared length {:.2g}, and a covariance takes at most {:.2g} with "
      "lambda = {}. Normalise the features.",
      information, kLargestInformation * lambda, lambda);
}

double width_error(double width_sq, double v_y, double y_a_y) {
  if (v_y == 0.0 && y_a_y == 0.0) return 0.0;  // equal documents
  const double corrected = 2.0 * v_y - y_a_y;
  if (corrected <= 0.0) return std::numeric_limits<double>::infinity();
  return std::abs(width_sq - corrected) / corrected;
}

DriftProbes drift_probes(const CovarianceChecks& checks, std::int64_t parameters, std::int64_t pairs) {
  const auto draws_of = [&](int number) {
    return RngStream(make_key({.purpose = Purpose::kProbe}), static_cast<std::uint32_t>(pairs),
                     static_cast<std::uint32_t>(number));
  };
  DriftProbes probes;
  probes.vectors.resize(static_cast<std::size_t>(checks.vectors * parameters));
  for (int number = 0; number < checks.vectors; ++number) {
    draws_of(number).unit_vector(
        std::span(probes.vectors)
            .subspan(static_cast<std::size_t>(number * parameters), static_cast<std::size_t>(parameters)));
  }
  if (pairs == 0) return probes;
  RngStream draws = draws_of(checks.vectors);
  for (int number = 0; number < checks.pairs; ++number) probes.pairs.push_back(draws.index(pairs));
  return probes;
}

double drift_of(std::span<const double> along_vectors, std::span<const double> of_pairs) {
  double drift = 0.0;
  for (const double error : along_vectors) drift = worse(error, drift);
  if (of_pairs.empty()) return drift;
  std::vector<double> errors;
  for (const double error : of_pairs)
    errors.push_back(std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
  const auto median = errors.begin() + std::ssize(errors) / 2;
  std::nth_element(errors.begin(), median, errors.end());
  return worse(drift, *median);
}

double measure_drift(const CovarianceChecks& checks, std::int64_t parameters, std::int64_t pairs,
                     FunctionRef<double(std::span<const double>)> error_along,
                     FunctionRef<double(std::int64_t)> error_of_pair) {
  const DriftProbes probes = drift_probes(checks, parameters, pairs);
  std::vector<double> along_vectors;
  for (std::size_t first = 0; first < probes.vectors.size(); first += static_cast<std::size_t>(parameters))
    along_vectors.push_back(
        error_along(std::span(probes.vectors).subspan(first, static_cast<std::size_t>(parameters))));
  std::vector<double> of_pairs;
  for (const std::int64_t pair : probes.pairs) of_pairs.push_back(error_of_pair(pair));
  return drift_of(along_vectors, of_pairs);
}

std::vector<double> unit_at_largest(std::span<const double> v) {
  std::vector<double> unit(v.size());
  const auto largest =
      std::max_element(v.begin(), v.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  unit[largest - v.begin()] = 1.0;
  return unit;
}

double quadratic_form(double lambda, double scale, std::span<const double> y,
                      std::span<const double> products) {
  return lambda * std::inner_product(y.begin(), y.end(), y.begin(), 0.0) +
         scale * std::inner_product(products.begin(), products.end(), products.begin(), 0.0);
}

void DriftWarning::give(const CovarianceName& name, double drift) const {
  if (given_) return;
  given_ = true;
  log_warning("{} has lost digits: {}. Normalise the features, or choose a larger lambda than {}.",
              text_of(name), text_of_drift(drift), name.lambda);
}

std::int64_t DriftMonitor::interval(std::int64_t observed) const {
  std::int64_t interval = checks_.every;
  while (8 * interval <= observed) interval *= 2;
  return interval;
}

void DriftMonitor::add(std::int64_t pairs, std::int64_t observed) {
  due_ = due_ || will_be_due(pairs, observed);
  thorough_ = thorough_ || (checks_.every > 0 && passes(4 * interval(observed), pairs));
  counted_ += pairs;
}

bool DriftMonitor::will_be_due(std::int64_t pairs, std::int64_t observed) const {
  if (checks_.every <= 0) return false;
  return passes(interval(observed), pairs);
}

void DriftMonitor::set_unchecked(std::int64_t pairs) {
  counted_ = pairs;
  due_ = false;
  thorough_ = false;
}

void DriftMonitor::check(const CovarianceName& name, FunctionRef<double()> drift,
                         FunctionRef<void(std::string_view)> rebuild) {
  due_ = false;
  thorough_ = false;
  if (counted_ >= kCycle * interval(name.pairs)) counted_ = 0;
  double error = drift();
  warn(name, error);
  if (error <= checks_.drift_bound) return;
  rebuild(text_of_drift(error));
  error = drift();
  if (error <= checks_.drift_bound) return;
  throw_lost_precision(name, text_of_drift(error));
}

void DriftMonitor::warn(const CovarianceName& name, double drift) const {
  if (!(drift <= checks_.drift_bound)) warning_.give(name, drift);
}

}  // namespace olrank
