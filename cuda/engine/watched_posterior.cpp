#include "cuda/engine/watched_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "core/runtime/log.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

// As models/posterior/full_posterior.cpp has them.
constexpr int kProbes = 2;
constexpr std::int64_t kCheckEvery = 512;
constexpr double kDriftBound = 1e-4;

}  // namespace

WatchedPosterior::WatchedPosterior(DeviceCovariance covariance, const ResidentPosteriorSpec& spec,
                                   Stream stream)
    : spec_(spec), posterior_(make_resident_posterior(covariance, spec, stream)) {}

void WatchedPosterior::observe(Stream stream, const FactorRows& docs, double* m,
                               const PreferencePair* pairs, std::int64_t count) {
  for (std::int64_t first = 0; first < count; first += kMostPairsPerBatch) {
    // The batch before has changed what m says.
    if (first > 0) posterior_->gram(stream, docs, m);
    posterior_->observe(stream, docs, m, pairs + first, std::min(kMostPairsPerBatch, count - first));
  }
  unchecked_ += count;
}

double WatchedPosterior::drift(Stream stream) {
  double worst = 0.0;
  std::vector<double> probe(static_cast<std::size_t>(spec_.shape.parameters()));
  for (int number = 0; number < kProbes; ++number) {
    RngStream draws(make_key({.purpose = Purpose::kProbe}), static_cast<std::uint32_t>(posterior_->pairs()),
                    static_cast<std::uint32_t>(number));
    draws.unit_vector(probe);
    const double residual = posterior_->residual(stream, probe);
    // max() would drop a NaN.
    if (!(residual <= worst)) worst = residual;
  }
  return worst;
}

void WatchedPosterior::check_drift(Stream stream) {
  if (unchecked_ < kCheckEvery) return;
  unchecked_ = 0;
  if (drift(stream) <= kDriftBound) return;
  posterior_->rebuild(stream);
  const double residual = drift(stream);
  if (residual <= kDriftBound) return;
  throw NumericError(
      fmt::format("The {} covariance of {} pairs has lost its digits at lambda = {}: its residual is "
                  "{:.2g}, above the bound of {:.2g}, even when it is made anew. Choose a larger lambda.",
                  posterior_->form(), posterior_->pairs(), spec_.lambda, residual, kDriftBound));
}

void WatchedPosterior::repair(Stream stream) {
  if (rebuilt_) {
    throw NumericError(
        fmt::format("The {} covariance of {} pairs has lost its digits at lambda = {}, and making it anew "
                    "did not help. Choose a larger lambda.",
                    posterior_->form(), posterior_->pairs(), spec_.lambda));
  }
  log_detail("The covariance of {} pairs is made anew.", posterior_->pairs());
  posterior_->rebuild(stream);
  rebuilt_ = true;
}

void WatchedPosterior::go_primal(Stream stream) {
  posterior_ = make_primal_of(*posterior_, spec_, stream);
  unchecked_ = 0;
}

void WatchedPosterior::save(StateWriter& state) const {
  state.put_text("device.form", posterior_->form());
  posterior_->save(state);
  state.put("device.unchecked", unchecked_);
}

void WatchedPosterior::load(Stream stream, StateReader& state) {
  const std::string form = state.get_text("device.form");
  if (form == "primal" && posterior_->form() == "dual")
    posterior_ = make_resident_posterior(DeviceCovariance::kPrimal, spec_, stream);
  if (form != posterior_->form())
    state.fail(fmt::format("The saved covariance is '{}', not '{}'.", form, posterior_->form()));
  posterior_->load(stream, state);
  unchecked_ = state.get_one<std::int64_t>("device.unchecked");
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
