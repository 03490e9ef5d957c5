#pragma once

#include <memory>

#include "core/device/device_posterior.h"
#include "models/posterior/form_policy.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// A covariance as a device has it. A full one in dual form may become primal as FormPolicy says.
DeviceCovariance device_covariance(Covariance covariance, CovarianceForm form);

/// What a device is to know of a posterior.
DevicePosteriorRequest device_posterior_request(const PosteriorSpec& spec, int device);

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
  std::int64_t negative_widths() const override { return negative_widths_; }
  std::string_view form() const override { return device_->form(); }
  std::int64_t bytes() const override { return device_->bytes(); }
  bool bytes_are_of_the_run() const override { return true; }

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  PosteriorSpec spec_;
  FormPolicy policy_;
  std::unique_ptr<DevicePosterior> device_;
  std::int64_t negative_widths_ = 0;
};

}  // namespace olrank
