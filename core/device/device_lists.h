#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/data/dataset.h"
#include "core/ops/list_loss.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/relu_network.h"

namespace olrank {

/// Queries with grades on a device, and the network that is fitted to them. Spans and documents have to
/// outlive what is made of this.
struct DeviceListsSpec {
  int device = 0;  // as CUDA numbers the visible ones
  NetworkShape shape;
  ListLossForm form;
  const Dataset* docs = nullptr;          // and the weights of its queries
  std::span<const std::uint8_t> grades;   // of every document
  std::span<const std::int64_t> offsets;  // [queries + 1], of the documents
  /// The documents may take so many bytes on the device. Where they take more, each batch of them travels
  /// there when it is needed, while the one before it is computed; no result depends on it.
  std::int64_t bytes_for_docs = 0;
};

/// Losses of lists with labels and their gradients by θ, on a device. Parameters are the host's: every call
/// takes them there and waits once, so that what is saved is what the host has. Sums go over blocks of
/// whole queries whose borders depend on the queries alone. Used by one thread at a time.
class DeviceLists {
 public:
  DeviceLists() = default;
  virtual ~DeviceLists() = default;
  DeviceLists(const DeviceLists&) = delete;
  DeviceLists& operator=(const DeviceLists&) = delete;

  /// The sum of the losses of these queries, times their relative_weights(). `gradient` [p] gets its
  /// gradient unless it is empty.
  virtual double losses(std::span<const float> theta, std::span<const std::int64_t> queries,
                        std::span<double> gradient) = 0;
  /// One pass of Adam, as adam_pass() of the host makes it; returns the sum of the losses that were met.
  virtual double adam_pass(const AdamPass& pass, const AdamState& state) = 0;
  /// The scores of all documents; returns the sum of their lists' losses, without weights.
  virtual double score(std::span<const float> theta, std::span<float> scores) = 0;
  /// Whether the documents stay on the device.
  virtual bool docs_stay() const = 0;
};

/// Throws NotBuiltWithCuda, or CudaError if the device is not available.
std::unique_ptr<DeviceLists> make_device_lists(const DeviceListsSpec& spec);

}  // namespace olrank
