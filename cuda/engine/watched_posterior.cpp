#include "cuda/engine/watched_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/online/retraining.h"
#include "core/ops/covariance.h"
#include "core/runtime/log.h"
#include "cuda/ops/tangent_factors.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr double kUnknown = -1.0;  // no check yet

}  // namespace

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
  const DriftProbes probes = drift_probes(spec().checks, spec().shape.parameters(), posterior_->pairs());
  const std::vector<double> errors = posterior_->errors_of(stream, probes);
  if (errors.empty()) return 0.0;
  const std::span<const double> all(errors);
  return drift_of(all.first(all.size() - probes.pairs.size()), all.last(probes.pairs.size()));
}

double WatchedPosterior::drift(Stream stream) {
  // The state does not keep this measurement, as it must not depend on when somebody asks.
  const double drift = latest_drift_ ? *latest_drift_ : measured_drift(stream);
  monitor_.warn(name(), drift);
  return drift;
}

void WatchedPosterior::check_drift(Stream stream) {
  if (!monitor_.is_due()) return;
  const bool thorough = monitor_.is_thorough();
  monitor_.check(
      name(),
      [&] {
        double drift = measured_drift(stream);
        if (thorough && drift <= spec().checks.drift_bound) {
          // As seen from a fresh factorisation; 0 where there is none.
          drift = posterior_->factorise_afresh(stream) ? measured_drift(stream) : 0.0;
          posterior_->drop_fresh_factor();
        }
        latest_drift_ = drift;
        return drift;
      },
      [&](std::string_view why) { rebuild(stream, why); });
}

void WatchedPosterior::rebuild(Stream stream, std::string_view why) {
  log_detail("The covariance of {} pairs is rebuilt: {}.", posterior_->pairs(), why);
  posterior_->rebuild(stream);
  latest_drift_.reset();
}

void WatchedPosterior::repair(Stream stream) {
  if (rebuilt_) throw_lost_precision(name(), kIndefinite);
  rebuild(stream, kIndefinite);
  rebuilt_ = true;
}

void WatchedPosterior::switch_to_primal() {
  posterior_ = make_primal_of(std::move(posterior_), *products_);
  monitor_.restart();
  latest_drift_.reset();
}

void WatchedPosterior::save(StateWriter& state) const {
  state.put_text("device.form", spec().name());
  posterior_->save(state);
  // Earlier versions wrote the count alone.
  state.put("device.unchecked", std::vector{monitor_.unchecked(),
                                            std::bit_cast<std::int64_t>(latest_drift_.value_or(kUnknown))});
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
  const std::vector<std::int64_t> kept = state.get<std::int64_t>("device.unchecked");
  if (kept.empty() || kept.size() > 2)
    state.fail("The saved count of pairs since the latest check is damaged.");
  monitor_.set_unchecked(kept[0]);
  latest_drift_.reset();
  if (kept.size() == 2 && kept[1] != std::bit_cast<std::int64_t>(kUnknown))
    latest_drift_ = std::bit_cast<double>(kept[1]);
}

ShadowPosterior::ShadowPosterior(const PosteriorSpec& spec, Products& products)
    : shape_(spec.shape),
      posterior_(spec, products),
      places_(std::span<const PreferencePair>(pairs_of_rows(0, kBatch))) {}

FactorRows ShadowPosterior::gather(Stream stream, const FactorRows& docs, const std::int32_t* pairs,
                                   std::int64_t count) {
  rows_.reserve(stream, 2 * count * shape_.factors());
  gather_pairs(stream, docs, pairs, count, rows_.data());
  return {rows_.data(), 2 * count, shape_.factors()};
}

void ShadowPosterior::observe(Stream stream, const FactorRows& docs, const PreferencePair* pairs,
                              std::int64_t count) {
  static_assert(sizeof(PreferencePair) == 2 * sizeof(std::int32_t));
  for (std::int64_t first = 0; first < count; first += kBatch) {
    const std::int64_t taken = std::min(kBatch, count - first);
    const FactorRows rows =
        gather(stream, docs, reinterpret_cast<const std::int32_t*>(pairs + first), taken);
    m_.reserve(stream, rows.docs * rows.docs);
    posterior_.gram(stream, rows, m_.data());
    posterior_.observe(stream, rows, m_.data(), places_.data(), taken);
  }
}

std::span<const double> ShadowPosterior::m_of(Stream stream, const FactorRows& docs,
                                              std::span<const std::int32_t> chosen) {
  const auto count = std::ssize(chosen);
  const std::int64_t pairs = (count + 1) / 2;
  const std::size_t index_bytes = static_cast<std::size_t>(2 * pairs) * sizeof(std::int32_t);
  const std::size_t m_bytes = static_cast<std::size_t>(count * count) * sizeof(double);
  host_chosen_.reserve(index_bytes);
  host_m_.reserve(m_bytes);
  std::memset(host_chosen_.data(), 0, index_bytes);  // an odd one is paired with document 0
  std::memcpy(host_chosen_.data(), chosen.data(), chosen.size_bytes());
  chosen_.reserve(stream, 2 * pairs);
  m_.reserve(stream, count * count);
  copy_bytes(stream, chosen_.data(), host_chosen_.data(), index_bytes);
  FactorRows rows = gather(stream, docs, chosen_.data(), pairs);
  rows.docs = count;
  CovarianceStatus status;
  do {
    posterior_.gram(stream, rows, m_.data());
    copy_bytes(stream, host_m_.data(), m_.data(), m_bytes);
    OwnedStream::wait_for(stream);
    copy_to_host(posterior_.status(), std::span(&status, 1));
    if (status.failed != 0) posterior_.repair(stream);
  } while (status.failed != 0);
  return {reinterpret_cast<const double*>(host_m_.data()), static_cast<std::size_t>(count * count)};
}

std::span<const double> ShadowPosterior::width_sq(ExecutionContext& context, Stream stream,
                                                  const FactorRows& docs,
                                                  std::span<const std::int32_t> chosen) {
  for (;;) {
    const std::span<const double> m = m_of(stream, docs, chosen);
    width_sq_.assign(m.begin(), m.end());
    const WidthHealth health =
        pair_width_sq(context, std::ssize(chosen), width_sq_.data(), width_sq_.data());
    if (health.lost == 0) break;
    posterior_.repair(stream);
  }
  posterior_.trust();
  return width_sq_;
}

std::int64_t ShadowPosterior::bytes() const {
  return bytes_of(posterior_, rows_, m_, chosen_, places_);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
