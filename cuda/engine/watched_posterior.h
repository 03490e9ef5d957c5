#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/covariance/covariance_checks.h"
#include "core/io/state_archive.h"
#include "cuda/engine/resident_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Adds drift checks, rebuilds and form switching to a posterior.
class WatchedPosterior {
 public:
  WatchedPosterior(const PosteriorSpec& spec, Products& products);

  void gram(Stream stream, const FactorRows& docs, double* m) { posterior_->gram(stream, docs, m); }
  /// Observes pairs [count], on the device, of the documents of the latest gram(), whose result is m; more
  /// than one batch of them overwrites m.
  void observe(Stream stream, const FactorRows& docs, double* m, const PreferencePair* pairs,
               std::int64_t count);
  /// To be called after observe(). If the drift is due to be measured, waits, and rebuilds or throws.
  void check_drift(Stream stream);
  /// Rebuilds after an answer that rounding has spoiled; NumericError if the answer before was spoiled too.
  void repair(Stream stream);
  /// To be called after a good answer.
  void trust() { rebuilt_ = false; }
  void switch_to_primal();

  const CovarianceStatus* status() const { return posterior_->status(); }
  /// See core/covariance/covariance_checks.h. Warns once if it is beyond the bound; waits.
  double drift(Stream stream);
  const PosteriorSpec& spec() const { return posterior_->spec(); }
  std::int64_t bytes() const { return posterior_->bytes(); }

  void save(StateWriter& state) const;
  void load(Stream stream, StateReader& state);

 private:
  CovarianceName name() const { return {spec().name(), posterior_->pairs(), spec().lambda}; }
  void rebuild(Stream stream, std::string_view why);
  double measured_drift(Stream stream);
  /// The drift seen from a fresh factorisation; 0 where there is none.
  double drift_from_fresh(Stream stream);

  Products* products_;
  std::unique_ptr<ResidentPosterior> posterior_;
  DriftMonitor monitor_;
  bool rebuilt_ = false;  // since the latest good answer
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
