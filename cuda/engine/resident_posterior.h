#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/io/state_archive.h"
#include "core/online/preference_pair.h"
#include "core/ops/device_network.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// What is known about θ, on the device: the kernels of one covariance and the memory they work in.
class ResidentPosterior {
 public:
  ResidentPosterior() = default;
  virtual ~ResidentPosterior() = default;
  ResidentPosterior(const ResidentPosterior&) = delete;
  ResidentPosterior& operator=(const ResidentPosterior&) = delete;

  /// m [docs × docs] (lower triangle) = s · G A⁻¹ Gᵀ.
  virtual void gram(Stream stream, const FactorRows& docs, double* m) = 0;
  /// Takes in pairs [count], on the device, of the documents whose gram() was the latest call.
  virtual void observe(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
                       std::int64_t count) = 0;
  /// Everything anew from the pairs observed so far, where something of them is kept.
  virtual void rebuild(Stream) {}

  /// Log of det A/det λI and whether rounding has made A indefinite, on the device.
  virtual const CovarianceStatus* status() const = 0;
  /// ‖A A⁻¹ v − v‖/‖v‖ for a unit vector v; waits.
  virtual double residual(Stream stream, std::span<const double> probe) = 0;
  virtual std::int64_t pairs() const = 0;
  virtual std::string_view form() const = 0;
  virtual std::int64_t bytes() const = 0;

  virtual void save(StateWriter& state) const = 0;
  virtual void load(Stream stream, StateReader& state) = 0;
};

/// What a resident posterior is made of.
struct ResidentPosteriorSpec {
  NetworkShape shape;
  double lambda = 1.0;
  double scale = 1.0;
};

std::unique_ptr<ResidentPosterior> make_resident_posterior(DeviceCovariance covariance,
                                                           const ResidentPosteriorSpec& spec,
                                                           Stream stream);

/// The dual form's pairs, in primal form. `posterior` is one that make_resident_posterior() made for kDual.
std::unique_ptr<ResidentPosterior> make_primal_of(ResidentPosterior& posterior,
                                                  const ResidentPosteriorSpec& spec, Stream stream);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
