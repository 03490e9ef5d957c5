#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace olrank {

/// Documents that others keep in the memory of a device, row by row.
struct GivenDocs {
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  std::int64_t stride = 0;  // values from one row to the next
};

/// The inputs of a query's documents in the memory of a device, where nothing changes them.
class DeviceDocs {
 public:
  DeviceDocs() = default;
  virtual ~DeviceDocs() = default;
  DeviceDocs(const DeviceDocs&) = delete;
  DeviceDocs& operator=(const DeviceDocs&) = delete;

  virtual const float* values() const = 0;  // [docs × features]
  /// Different from that of all others of this process, from 1; an address may come again.
  virtual std::uint64_t number() const = 0;
  /// Copies these rows to their places in `inputs` [docs × features] on the host; waits.
  virtual void copy_rows(std::span<const std::int32_t> rows, float* inputs) const = 0;
};

/// Makes inputs of documents that are on a device already. Any number of threads may let go of what it has
/// made; take() is for one at a time.
class DeviceIntake {
 public:
  DeviceIntake() = default;
  virtual ~DeviceIntake() = default;
  DeviceIntake(const DeviceIntake&) = delete;
  DeviceIntake& operator=(const DeviceIntake&) = delete;

  struct Taken {
    std::shared_ptr<const DeviceDocs> docs;
    std::int64_t not_finite = -1;  // the first such value, of docs × features
    std::int64_t beyond = -1;      // the first one beyond ±limit, where no value is infinite or NaN
  };
  /// Copies the documents, each column scaled to its range if so asked, as FittedNormaliser does; waits.
  virtual Taken take(const GivenDocs& given, bool scale, float limit) = 0;
  /// The cudaStream_t in which it reads what is given: the work that writes that has to be ahead in it.
  virtual void* stream() const = 0;
};

/// Throws NotBuiltWithCuda, or CudaError if the device is not available.
std::shared_ptr<DeviceIntake> make_device_intake(int device);

}  // namespace olrank
