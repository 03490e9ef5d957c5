#include "cuda/engine/packet.h"

#include <algorithm>
#include <cstring>

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::size_t kAlignment = 16;

/// Writes arrays one after another, or only counts their bytes.
class Sections {
 public:
  explicit Sections(std::byte* here) : here_(here) {}

  template <class T>
  std::size_t add(std::span<const T> values) {
    const std::size_t at = size_;
    if (here_ != nullptr && !values.empty()) std::memcpy(here_ + at, values.data(), values.size_bytes());
    size_ += (values.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::byte* here_;
  std::size_t size_ = 0;
};

PackedLesson lay_out(Sections& sections, const DeviceLesson& lesson, std::span<const std::int32_t> ends,
                     const std::byte* there) {
  const auto place = [&]<class T>(std::span<const T> values) {
    return reinterpret_cast<const T*>(there + sections.add(values));
  };
  PackedLesson packed;
  packed.round = place(std::span(&lesson.round, 1));
  packed.observed = place(std::span(&lesson.observed, 1));
  packed.pairs = place(lesson.pairs);
  packed.new_docs = place(lesson.new_docs);
  packed.terms = place(lesson.terms);
  packed.observations = place(lesson.observations);
  packed.examined = place(lesson.examined);
  packed.clicks = place(lesson.clicks);
  packed.order = place(lesson.order);
  packed.ends = place(ends);
  return packed;
}

}  // namespace

PackedLesson Packet::send(Stream stream, const DeviceLesson& lesson, std::span<const std::int32_t> ends) {
  Sections counted(nullptr);
  lay_out(counted, lesson, ends, nullptr);
  if (counted.size() > here_.size()) here_ = PinnedBytes(2 * counted.size());
  there_.reserve(stream, static_cast<std::int64_t>(counted.size()));
  Sections written(here_.data());
  const PackedLesson packed = lay_out(written, lesson, ends, there_.data());
  copy_bytes(stream, there_.data(), here_.data(), written.size());
  return packed;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
