#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/device/posterior_spec.h"
#include "core/io/state_archive.h"
#include "core/online/preference_pair.h"
#include "core/ops/tangent_factors.h"

namespace olrank {

/// A covariance that lives on a device, of gradients whose factors come from the host: those of scoring
/// functions that the device's networks do not compute. Drift is watched and repaired as
/// core/covariance/covariance_checks.h says. Used by one thread at a time.
class DevicePosterior {
 public:
  DevicePosterior() = default;
  virtual ~DevicePosterior() = default;
  DevicePosterior(const DevicePosterior&) = delete;
  DevicePosterior& operator=(const DevicePosterior&) = delete;

  /// m [docs × docs], lower triangle, = s · G A⁻¹ Gᵀ. Waits, as nothing else in a usual round does. Repairs
  /// a covariance that rounding has made indefinite.
  virtual void gram(TangentFactors docs, std::span<double> m) = 0;
  /// To be called if the latest gram() gave widths that rounding has spoiled: rebuilds the covariance.
  /// NumericError if the gram() before gave such widths, too.
  virtual void repair() = 0;
  /// To be called if it gave good ones.
  virtual void trust() = 0;
  /// Takes pairs of these documents in. Those of the latest gram() are on the device already.
  virtual void observe(TangentFactors docs, std::span<const PreferencePair> pairs) = 0;
  /// Switches a full covariance from the dual to the primal form.
  virtual void switch_to_primal() = 0;

  virtual std::int64_t pairs() const = 0;
  /// log det(A)/det(λI); waits if pairs were observed since the latest gram().
  virtual double log_det() = 0;
  /// The estimated relative error of squared widths; waits.
  virtual double drift() = 0;
  virtual const PosteriorSpec& spec() const = 0;
  virtual std::int64_t bytes() const = 0;
  /// Whether a full covariance grows without a second copy of itself.
  virtual bool grows_in_place() const = 0;

  virtual void save(StateWriter& state) = 0;
  virtual void load(StateReader& state) = 0;
};

/// Devices are numbered as CUDA numbers the visible ones. A shadow is a DevicePosterior of its own. Throws
/// NotBuiltWithCuda, CudaError if the device is not available, or InvalidArgument for more layers than
/// kMostDeviceLayers.
std::unique_ptr<DevicePosterior> make_device_posterior(int device, const PosteriorSpec& spec);

}  // namespace olrank
