#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/data/feature_matrix.h"
#include "core/device/visible_gpus.h"
#include "models/posterior/form_policy.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

struct ModelSize;

/// The device that a ranker runs on, its memory, and the documents that the ranker will rank and score.
/// Networks in closed form share the device's copy of these documents. Documents of other queries, and of
/// all where `train` is empty, go to the device with each call.
struct RankerDevice {
  int gpu = 0;                 // as CUDA numbers the visible ones
  FeatureMatrix train;         // has to outlive the ranker, as does `eval_docs`
  std::int64_t most_docs = 0;  // of a query
  FeatureMatrix eval_docs;
  std::int64_t memory = 0;  // bytes that the ranker may take on the device, next to these documents

  // Where LibTorch computes modules.
  std::function<std::optional<int>(int gpu)> libtorch_number = libtorch_number_of;
};

/// The GPU on which LibTorch computes the modules of a ranker; none without a device.
std::optional<int> libtorch_gpu(const RankerDevice* device);

/// What a covariance may take on the device, next to the network, a query's view, the history and its
/// training, whose arrays double.
FormPolicy::Room room_on_device(const RankerSettings& settings, const ModelSize& size,
                                const RankerDevice& device, bool grows_in_place);

/// Why a ranker cannot run on a device, as a clause; nothing if it can.
std::optional<std::string> why_not_on_device(const RankerSettings& settings);

}  // namespace olrank
