#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/engine/device_network.h"
#include "cuda/ops/query_inputs.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Arrays that one list after another uses: allocating and freeing wait for the whole device.
class Intake : public DeviceIntake, public std::enable_shared_from_this<Intake> {
 public:
  explicit Intake(int device) : device_(device), bad_(1), answer_(sizeof(unsigned long long)) {}

  Taken take(const GivenDocs& given, bool scale, float limit) override;
  void* stream() const override { return stream_.get(); }

  void give_back(DeviceArray<float> array) {
    constexpr std::size_t kKept = 4;
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kKept) return spare_.push_back(std::move(array));
    const auto smallest = std::ranges::min_element(spare_, {}, &DeviceArray<float>::size);
    if (smallest->size() < array.size()) std::swap(*smallest, array);
  }
  void copy_rows(const float* values, std::int64_t features, std::span<const std::int32_t> rows,
                 float* inputs) {
    const std::lock_guard lock(mutex_);
    use_device(device_);
    const std::size_t bytes = static_cast<std::size_t>(features) * sizeof(float);
    rows_.reserve(rows.size() * bytes);
    for (std::size_t i = 0; i < rows.size(); ++i)
      copy_bytes(rows_stream_.get(), rows_.data() + i * bytes, values + rows[i] * features, bytes);
    rows_stream_.wait();
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(inputs + rows[i] * features, rows_.data() + i * bytes, bytes);
  }

 private:
  DeviceArray<float> array_for(std::int64_t numbers) {
    const std::lock_guard lock(mutex_);
    for (DeviceArray<float>& spare : spare_) {
      if (spare.size() < numbers) continue;
      std::swap(spare, spare_.back());
      DeviceArray<float> found = std::move(spare_.back());
      spare_.pop_back();
      return found;
    }
    return DeviceArray<float>(numbers + numbers / 4);
  }

  int device_;
  OwnedStream stream_;
  DeviceArray<unsigned long long> bad_;
  PinnedBytes answer_;
  std::mutex mutex_;  // of what follows
  std::vector<DeviceArray<float>> spare_;
  OwnedStream rows_stream_;
  PinnedBytes rows_;
};

/// Documents that keep what made them.
class HeldDocs : public DeviceDocs {
 public:
  HeldDocs(std::shared_ptr<Intake> maker, DeviceArray<float> values, std::int64_t features)
      : maker_(std::move(maker)), values_(std::move(values)), features_(features) {}
  ~HeldDocs() override { maker_->give_back(std::move(values_)); }

  const float* values() const override { return values_.data(); }
  std::uint64_t number() const override { return number_; }
  void copy_rows(std::span<const std::int32_t> rows, float* inputs) const override {
    maker_->copy_rows(values_.data(), features_, rows, inputs);
  }

 private:
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> latest{0};
    return ++latest;
  }

  std::shared_ptr<Intake> maker_;
  DeviceArray<float> values_;
  std::int64_t features_;
  std::uint64_t number_ = next_number();
};

DeviceIntake::Taken Intake::take(const GivenDocs& given, bool scale, float limit) {
  use_device(device_);
  const std::int64_t numbers = given.docs * given.features;
  const auto count = static_cast<unsigned long long>(numbers);
  auto docs = std::make_shared<const HeldDocs>(shared_from_this(), array_for(numbers), given.features);
  fill_bytes(stream_.get(), bad_.data(), 0xFF, sizeof count);
  query_inputs(stream_.get(), given, scale, limit, const_cast<float*>(docs->values()), bad_.data());
  copy_bytes(stream_.get(), answer_.data(), bad_.data(), sizeof count);
  stream_.wait();
  unsigned long long bad = 0;
  std::memcpy(&bad, answer_.data(), sizeof bad);
  Taken taken{std::move(docs)};
  if (bad < count) taken.not_finite = static_cast<std::int64_t>(bad);
  if (bad >= count && bad < 2 * count) taken.beyond = static_cast<std::int64_t>(bad - count);
  return taken;
}

}  // namespace

std::shared_ptr<DeviceIntake> make_intake(int device) {
  use_device(device);
  return std::make_shared<Intake>(device);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
