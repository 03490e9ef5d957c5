#pragma once

#include <span>

#include "core/io/state_archive.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A CovarianceStatus in device memory.
class PosteriorStatus {
 public:
  PosteriorStatus() { copy_to_device<CovarianceStatus>(std::span(&kFresh, 1), device_.data()); }

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
  static constexpr CovarianceStatus kFresh{};
  DeviceArray<CovarianceStatus> device_{1};
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
