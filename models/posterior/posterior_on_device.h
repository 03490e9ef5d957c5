#pragma once

#include <memory>

#include "core/device/device_posterior.h"
#include "models/posterior/form_policy.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// A posterior whose covariance lives on a device. The factors of documents go there and M comes back; the
/// rest is the host's. It belongs to one thread.
class PosteriorOnDevice : public Posterior {
 public:
  PosteriorOnDevice(const PosteriorSpec& spec, const FormPolicy::Room& room,
                    std::unique_ptr<DevicePosterior> device);

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override;
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override;
  /// Null: there is one copy of the covariance, and it learns on.
  std::shared_ptr<const Posterior> freeze() const override { return nullptr; }
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override;

  std::int64_t pairs() const override { return device_->pairs(); }
  double log_det() const override { return device_->log_det(); }
  double drift(ExecutionContext&) const override { return device_->drift(); }
  const PosteriorSpec& spec() const override { return device_->spec(); }
  std::int64_t bytes() const override { return device_->bytes(); }
  bool bytes_depend_on_run() const override { return true; }

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  FormPolicy policy_;
  std::unique_ptr<DevicePosterior> device_;
};

}  // namespace olrank
