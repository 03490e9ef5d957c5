#include "models/posterior/posterior_on_device.h"

#include <utility>

#include "core/runtime/log.h"
#include "models/posterior/gradient_length.h"

namespace olrank {

DeviceCovariance device_covariance(Covariance covariance, CovarianceForm form) {
  switch (covariance) {
    case Covariance::kFull:
      return form == CovarianceForm::kPrimal ? DeviceCovariance::kPrimal : DeviceCovariance::kDual;
    case Covariance::kDiagonal:
      return DeviceCovariance::kDiagonal;
    case Covariance::kDiagonalOfInverse:
      return DeviceCovariance::kDiagonalOfInverse;
    case Covariance::kInducing:
      return DeviceCovariance::kInducing;
    case Covariance::kUnitBlocks:
      return DeviceCovariance::kUnitBlocks;
    case Covariance::kLastLayer:
      return DeviceCovariance::kLastLayer;
    case Covariance::kNone:
      break;
  }
  return DeviceCovariance::kNone;
}

DevicePosteriorRequest device_posterior_request(const PosteriorSpec& spec, int device) {
  DevicePosteriorRequest request;
  request.device = device;
  request.shape = spec.shape;
  request.posterior.covariance = device_covariance(spec.covariance, spec.form);
  request.posterior.lambda = spec.lambda;
  request.posterior.scale = spec.scale;
  request.posterior.budget = spec.budget;
  request.posterior.checks = spec.checks;
  return request;
}

PosteriorOnDevice::PosteriorOnDevice(const PosteriorSpec& spec, const FormPolicy::Room& room,
                                     std::unique_ptr<DevicePosterior> device)
    : spec_(spec), policy_(spec.shape, spec.form, room), device_(std::move(device)) {}

WidthHealth PosteriorOnDevice::widths(ExecutionContext& context, TangentFactors docs,
                                      std::span<double> width_sq) const {
  device_->gram(docs, width_sq);
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

void PosteriorOnDevice::width_sq(ExecutionContext& context, TangentFactors docs,
                                 std::span<double> width_sq) {
  for (;;) {
    const WidthHealth health = widths(context, docs, width_sq);
    if (health.lost == 0) {
      negative_widths_ += health.negative;
      break;
    }
    device_->repair();
  }
  device_->trust();
}

void PosteriorOnDevice::observe(ExecutionContext&, TangentFactors docs,
                                std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  if (spec_.covariance != Covariance::kDiagonal)  // which nothing can make drift
    require_information(spec_.shape, spec_.lambda, spec_.scale, docs, pairs);
  if (device_->form() == "dual" && policy_.switches(device_->pairs(), std::ssize(pairs), docs.docs)) {
    device_->switch_to_primal();
    policy_.set_excess(0.0);
    log_detail("The covariance switches from {} pairs to {} parameters.", device_->pairs(),
               spec_.shape.parameters());
  }
  device_->observe(docs, pairs);
}

void PosteriorOnDevice::save(StateWriter& state) const {
  device_->save(state);
  state.put("device.excess", policy_.excess());
  state.put("device.negative_widths", negative_widths_);
}

void PosteriorOnDevice::load(StateReader& state) {
  device_->load(state);
  policy_.set_excess(state.get_one<double>("device.excess"));
  negative_widths_ = state.get_one<std::int64_t>("device.negative_widths");
}

}  // namespace olrank
