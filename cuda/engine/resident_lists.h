#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "cuda/runtime/device_array.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

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

  const float* data() const;
  std::int64_t bytes() const;

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
