#pragma once

#include <cstdint>
#include <memory>

#include "core/device/network_spec.h"
#include "cuda/engine/resident_history.h"
#include "cuda/ops/pair_training.h"
#include "cuda/runtime/products.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The sizes that fit batches of `batch` pairs, and the last, smaller one, of `observed` > 0 pairs.
TrainingSizes batch_sizes(const NetworkShape& shape, std::int64_t batch, std::int64_t observed);

/// Trains by shuffled mini-batches, as make_stacked_trainer() does otherwise; the spec has mini-batches.
std::unique_ptr<ResidentTrainer> make_batch_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                    Products& products);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
