#include "core/io/growing_values.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace olrank {
namespace {

class CopiedBytes : public ByteArrival {
 public:
  explicit CopiedBytes(std::span<const std::byte> bytes)
      : bytes_(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())) {}

  bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool /*wait*/) override {
    if (bytes_ != nullptr) sink({*bytes_, bytes_});
    bytes_.reset();
    return true;
  }

 private:
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

}  // namespace

void Lineage::renew() {
  static std::atomic<std::uint64_t> latest{0};
  id_ = ++latest;
}

void HostSource::copy(std::size_t first, std::span<std::byte> to) const {
  const auto from = values_.subspan(first, to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

std::shared_ptr<ByteArrival> HostSource::start(std::size_t first, std::size_t bytes) const {
  return std::make_shared<CopiedBytes>(values_.subspan(first, bytes));
}

}  // namespace olrank
