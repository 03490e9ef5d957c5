#include "cuda/engine/packet.h"

#include <algorithm>
#include <cstring>

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::size_t kAlignment = 16;

/// Writes arrays one after another, or only counts their bytes.
class Sections {
 public:
  explicit Sections(std::byte* host) : host_(host) {}

  template <class T>
  std::size_t add(std::span<const T> values) {
    const std::size_t at = size_;
    if (host_ != nullptr && !values.empty()) std::memcpy(host_ + at, values.data(), values.size_bytes());
    size_ += (values.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::byte* host_;
  std::size_t size_ = 0;
};

PackedUpdate lay_out(Sections& sections, const DeviceUpdate& update, std::span<const std::int32_t> ends,
                     const std::byte* device) {
  const auto place = [&]<class T>(std::span<const T> values) {
    return reinterpret_cast<const T*>(device + sections.add(values));
  };
  PackedUpdate packed;
  packed.noise_round = place(std::span(&update.noise_round, 1));
  packed.pairs = place(update.pairs);
  packed.new_docs = place(update.new_docs);
  packed.doc_numbers = place(update.doc_numbers);
  packed.terms = place(update.terms);
  packed.observations = place(update.observations);
  packed.examined = place(update.examined);
  packed.clicks = place(update.clicks);
  packed.order = place(update.order);
  packed.sample_docs = place(update.sample.docs);
  packed.sample_terms = place(update.sample.terms);
  packed.sample_sources = place(update.sample.sources);
  packed.ends = place(ends);
  return packed;
}

}  // namespace

PackedUpdate Packet::send(Stream stream, const DeviceUpdate& update, std::span<const std::int32_t> ends) {
  Sections counted(nullptr);
  lay_out(counted, update, ends, nullptr);
  if (counted.size() > host_.size()) host_ = PinnedBytes(2 * counted.size());
  device_.reserve(stream, std::ssize(counted));
  Sections written(host_.data());
  const PackedUpdate packed = lay_out(written, update, ends, device_.data());
  copy_bytes(stream, device_.data(), host_.data(), written.size());
  return packed;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
