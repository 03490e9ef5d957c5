#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/io/state_archive.h"
#include "cuda/engine/resident_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A posterior that is looked after: its drift is measured every so many pairs, what has lost its digits is
/// made anew once, and a full one may change its form.
class WatchedPosterior {
 public:
  WatchedPosterior(DeviceCovariance covariance, const ResidentPosteriorSpec& spec, Stream stream);

  void gram(Stream stream, const FactorRows& docs, double* m) { posterior_->gram(stream, docs, m); }
  /// Takes in pairs [count], on the device, of the documents whose gram() was the latest call and left m;
  /// more than a batch of them write over m.
  void observe(Stream stream, const FactorRows& docs, double* m, const PreferencePair* pairs,
               std::int64_t count);
  /// After observe(): waits, and may throw, in the rounds in which the drift is measured.
  void check_drift(Stream stream);
  /// For widths, or a status, that rounding has spoiled. Throws NumericError where the latest answer before
  /// this one was spoiled, too.
  void repair(Stream stream);
  /// The latest answer was good.
  void trust() { rebuilt_ = false; }
  void go_primal(Stream stream);

  const CovarianceStatus* status() const { return posterior_->status(); }
  /// ‖A A⁻¹ v − v‖/‖v‖, the largest of a few random v; waits.
  double drift(Stream stream);
  std::string_view form() const { return posterior_->form(); }
  std::int64_t bytes() const { return posterior_->bytes(); }

  void save(StateWriter& state) const;
  void load(Stream stream, StateReader& state);

 private:
  ResidentPosteriorSpec spec_;
  std::unique_ptr<ResidentPosterior> posterior_;
  std::int64_t unchecked_ = 0;  // pairs since the drift was measured
  bool rebuilt_ = false;        // since the latest good answer
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
