#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

// How a checkpoint gets values that are only appended to, without writing those again that it has.
namespace olrank {

/// Names values to which others are appended. What was there once never changes, or the lineage is renewed.
/// A copy of the values that nothing is appended to may share it.
class Lineage {
 public:
  Lineage() { renew(); }
  void renew();
  /// Unique within the process; never 0.
  std::uint64_t id() const { return id_; }

 private:
  std::uint64_t id_ = 0;
};

/// Bytes on the host, valid until `keep` is dropped, on any thread.
struct ArrivedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};

/// Bytes on their way to the host.
class ByteArrival {
 public:
  ByteArrival() = default;
  virtual ~ByteArrival() = default;
  ByteArrival(const ByteArrival&) = delete;
  ByteArrival& operator=(const ByteArrival&) = delete;

  /// Passes on what has arrived, in order, or with `wait` everything. Returns whether nothing is left.
  virtual bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) = 0;
};

/// Where values are.
class GrowingSource {
 public:
  GrowingSource() = default;
  virtual ~GrowingSource() = default;
  GrowingSource(const GrowingSource&) = delete;
  GrowingSource& operator=(const GrowingSource&) = delete;

  /// Copies the bytes from `first` on.
  virtual void copy(std::size_t first, std::span<std::byte> to) const = 0;
  /// Starts bringing them to the host. Values may be appended meanwhile.
  virtual std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const = 0;
};

/// Values on the host, which are copied at once.
class HostSource : public GrowingSource {
 public:
  explicit HostSource(std::span<const std::byte> values) : values_(values) {}

  void copy(std::size_t first, std::span<std::byte> to) const override;
  std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const override;

 private:
  std::span<const std::byte> values_;
};

}  // namespace olrank
