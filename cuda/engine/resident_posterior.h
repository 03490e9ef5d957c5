#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/covariance/covariance_checks.h"
#include "core/device/network_spec.h"
#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/tangent_factors.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/stream.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A CovarianceStatus in device memory.
class PosteriorStatus {
 public:
  PosteriorStatus() { reset(); }

  CovarianceStatus* get() { return device_.data(); }
  const CovarianceStatus* get() const { return device_.data(); }
  void reset() { set({}); }
  void set(const CovarianceStatus& status) {
    copy_to_device<CovarianceStatus>(std::span(&status, 1), device_.data());
  }
  CovarianceStatus read() const {
    CovarianceStatus status;
    copy_to_host<CovarianceStatus>(device_.data(), std::span(&status, 1));
    return status;
  }

  void save(StateWriter& state) const { state.put("device.log_det", read().log_det); }
  void load(StateReader& state) { set({state.get_one<double>("device.log_det"), 0}); }

 private:
  DeviceArray<CovarianceStatus> device_{1};
};

/// A covariance on the device: its kernels and the memory they work in.
class ResidentPosterior : public Interface {
 public:
  explicit ResidentPosterior(const PosteriorSpec& spec) : spec_(spec) {}

  /// m [docs × docs] (lower triangle) = s · G A⁻¹ Gᵀ.
  virtual void gram(Stream stream, const FactorRows& docs, double* m) = 0;
  /// Observes pairs [count], on the device, of the documents of the latest gram().
  virtual void observe(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
                       std::int64_t count) = 0;
  /// Recomputes everything from the pairs observed so far, if the covariance keeps them.
  virtual void rebuild(Stream) {}

  /// log(det A/det λI), and whether rounding has made A indefinite; on the device.
  const CovarianceStatus* status() const { return status_.get(); }
  /// width_error() of vᵀA⁻¹v for each unit vector v, then of the widths of the observed pairs, as gram()
  /// gives them; empty where nothing can drift. Waits once, and leaves the latest gram() alone.
  virtual std::vector<double> errors_of(Stream, const DriftProbes&) { return {}; }
  /// From now on that compares with a factorisation of all observed pairs at once, by a library, until that
  /// is dropped. Returns whether there is one: not without pairs, not where it needs too much memory.
  /// Waits.
  virtual bool factorise_afresh(Stream) { return false; }
  virtual void drop_fresh_factor() {}
  virtual std::int64_t pairs() const = 0;
  const PosteriorSpec& spec() const { return spec_; }
  virtual std::int64_t bytes() const = 0;

  virtual void save(StateWriter& state) const = 0;
  virtual void load(Stream stream, StateReader& state) = 0;

 protected:
  PosteriorSpec spec_;
  PosteriorStatus status_;
};

/// Works in the stream of `products`, which must outlive it, and in no other.
std::unique_ptr<ResidentPosterior> make_resident_posterior(const PosteriorSpec& spec, Products& products);

/// Makes a posterior of these pairs in primal form. `dual` is in dual form; its factor is freed first.
std::unique_ptr<ResidentPosterior> make_primal_of(std::unique_ptr<ResidentPosterior> dual,
                                                  Products& products);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
