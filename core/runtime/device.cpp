#include "core/runtime/device.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"

namespace olrank {

std::string Device::name() const {
  return kind == DeviceKind::kCpu ? "cpu" : fmt::format("cuda:{}", index);
}

DeviceRequest parse_device(std::string_view text) {
  if (text == "auto") return {true, {}};
  if (text == "cpu") return {false, {DeviceKind::kCpu, 0}};
  if (text == "cuda") return {false, {DeviceKind::kCuda, 0}};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.substr(0, kPrefix.size()) == kPrefix) {
    const std::string_view digits = text.substr(kPrefix.size());
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size() && index >= 0) {
      return {false, {DeviceKind::kCuda, index}};
    }
  }
  throw InvalidArgument(fmt::format("'{}' is not a device: use auto, cpu, cuda or cuda:N.", text));
}

}  // namespace olrank
