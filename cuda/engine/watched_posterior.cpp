#include "cuda/engine/watched_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/online/numeric_errors.h"
#include "core/runtime/log.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

WatchedPosterior::WatchedPosterior(const PosteriorSpec& spec, Products& products)
    : products_(&products), posterior_(make_resident_posterior(spec, products)), monitor_(spec.checks) {}

void WatchedPosterior::observe(Stream stream, const FactorRows& docs, double* m,
                               const PreferencePair* pairs, std::int64_t count) {
  for (std::int64_t first = 0; first < count; first += kMostPairsPerBatch) {
    // The batch before has changed m.
    if (first > 0) posterior_->gram(stream, docs, m);
    posterior_->observe(stream, docs, m, pairs + first, std::min(kMostPairsPerBatch, count - first));
  }
  monitor_.add(count, posterior_->pairs());
}

double WatchedPosterior::measured_drift(Stream stream) {
  return measure_drift(
      spec().checks, spec().shape.parameters(), posterior_->kept_pairs(),
      [&](std::span<const double> vector) { return posterior_->error_along(stream, vector); },
      [&](std::int64_t pair) { return posterior_->error_of_pair(stream, pair); });
}

double WatchedPosterior::drift(Stream stream) {
  const double drift = measured_drift(stream);
  monitor_.warn(name(), drift);
  return drift;
}

double WatchedPosterior::drift_from_fresh(Stream stream) {
  if (!posterior_->factorise_afresh(stream)) return 0.0;
  const double drift = measured_drift(stream);
  posterior_->drop_fresh_factor();
  return drift;
}

void WatchedPosterior::check_drift(Stream stream) {
  if (!monitor_.is_due()) return;
  const bool thorough = monitor_.is_thorough();
  monitor_.check(
      name(),
      [&] {
        const double drift = measured_drift(stream);
        return thorough && drift <= spec().checks.drift_bound ? drift_from_fresh(stream) : drift;
      },
      [&](std::string_view why) { rebuild(stream, why); });
}

void WatchedPosterior::rebuild(Stream stream, std::string_view why) {
  log_detail("The covariance of {} pairs is rebuilt: {}.", posterior_->pairs(), why);
  posterior_->rebuild(stream);
}

void WatchedPosterior::repair(Stream stream) {
  if (rebuilt_) throw_lost_precision(name(), kIndefinite);
  rebuild(stream, kIndefinite);
  rebuilt_ = true;
}

void WatchedPosterior::switch_to_primal() {
  posterior_ = make_primal_of(std::move(posterior_), *products_);
  monitor_.restart();
}

void WatchedPosterior::save(StateWriter& state) const {
  state.put_text("device.form", spec().name());
  posterior_->save(state);
  state.put("device.unchecked", monitor_.unchecked());
}

void WatchedPosterior::load(Stream stream, StateReader& state) {
  const std::string form = state.get_text("device.form");
  if (spec().is_dual() && value_named<CovarianceForm>(form) == CovarianceForm::kPrimal) {
    PosteriorSpec primal = spec();
    primal.form = CovarianceForm::kPrimal;
    posterior_ = make_resident_posterior(primal, *products_);
  }
  if (form != spec().name())
    state.fail(fmt::format("The saved covariance is '{}', not '{}'.", form, spec().name()));
  posterior_->load(stream, state);
  monitor_.set_unchecked(state.get_one<std::int64_t>("device.unchecked"));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
