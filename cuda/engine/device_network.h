#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/data/dataset.h"
#include "core/device/device_network.h"
#include "cuda/runtime/device_array.h"

// A CUDA build calls these from make_device_network() and its like; the tests make the emulated ones.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

std::unique_ptr<DeviceNetwork> make_network(const DeviceNetworkSpec& spec);
/// `seats` trials begin together if they come at about the same time. Those who wait go without a trial
/// that came to the latest meeting for no longer than `patience`. Results depend on neither.
std::shared_ptr<DeviceBatch> make_batch(int device, std::int64_t seats,
                                        std::chrono::milliseconds patience = std::chrono::milliseconds{2});
std::unique_ptr<DeviceLists> make_lists(const DeviceListsSpec& spec);
std::shared_ptr<DeviceIntake> make_intake(int device);

/// Documents in the memory of a device: one copy for everything there that uses the same matrix, from any
/// thread, until the last of its users is gone. The matrix is recognised by its address, so it has to
/// outlive them.
class SharedDocuments {
 public:
  /// The device has to be the calling thread's, here and in the destructor.
  SharedDocuments(int device, const FeatureMatrix& docs);
  ~SharedDocuments();
  SharedDocuments(const SharedDocuments&) = delete;
  SharedDocuments& operator=(const SharedDocuments&) = delete;

  const float* data() const { return copy_->values.data(); }
  std::int64_t bytes() const { return copy_->values.bytes(); }

  struct Copy {
    DeviceArray<float> values;
    std::int64_t users = 0;
  };

 private:
  int device_;
  FeatureMatrix docs_;
  Copy* copy_ = nullptr;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
