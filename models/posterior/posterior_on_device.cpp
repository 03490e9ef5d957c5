#include "models/posterior/posterior_on_device.h"

#include <utility>

#include "core/runtime/log.h"
#include "models/posterior/gradient_length.h"

namespace olrank {

PosteriorOnDevice::PosteriorOnDevice(const PosteriorSpec& spec, const FormPolicy::Room& room,
                                     std::unique_ptr<DevicePosterior> device)
    : Posterior(spec), policy_(spec.shape, spec.form, room), device_(std::move(device)) {}

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
  if (device_->spec().is_dual() && policy_.switches(device_->pairs(), std::ssize(pairs), docs.docs)) {
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
