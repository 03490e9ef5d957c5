#pragma once

#include <memory>

#include "core/device/network_spec.h"
#include "cuda/engine/resident_history.h"
#include "cuda/runtime/products.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Trains on full batches, or throws InvalidArgument if the spec demands one kernel where that is
/// impossible. The spec's spans are read now only. `theta` [members × p] is trained, in the stream of
/// `products`, which must outlive the trainer.
std::unique_ptr<ResidentTrainer> make_stacked_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                      Products& products);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
