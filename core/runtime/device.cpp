#include "core/runtime/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <optional>

#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::string_view kGpuPrefix = "cuda:";

std::string range_text(const GpuRange& range) {
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

/// A number in digits alone, removed from the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// "1" or "0-3".
std::optional<GpuRange> parse_range(std::string_view text) {
  const std::optional<int> first = take_number(text);
  if (!first) return std::nullopt;
  if (text.empty()) return GpuRange{*first, *first};
  if (!text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<int> last = take_number(text);
  if (!last || !text.empty()) return std::nullopt;
  return GpuRange{*first, *last};
}

[[noreturn]] void refuse_device(std::string_view text) {
  throw_error<InvalidArgument>(
      "'{}' is not a device: use auto, cpu, cuda, cuda:N, cuda:all or a list such as cuda:0-3 or cuda:1,3.",
      text);
}

/// "1,3" or "0-3,6", ascending.
std::vector<GpuRange> parse_gpu_list(std::string_view list, std::string_view whole) {
  std::vector<GpuRange> gpus;
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::optional<GpuRange> range = parse_range(list.substr(0, comma));
    if (!range) refuse_device(whole);
    if (range->last < range->first) {
      throw_error<InvalidArgument>("The range {}-{} in '{}' runs backwards: use {}-{}.", range->first,
                                   range->last, whole, range->last, range->first);
    }
    gpus.push_back(*range);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const GpuRange& a, const GpuRange& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < gpus.size(); ++i) {
    if (gpus[i].first <= gpus[i - 1].last)
      throw_error<InvalidArgument>("'{}' names cuda:{} twice: name each GPU once.", whole, gpus[i].first);
  }
  return gpus;
}

}  // namespace

DeviceRequest parse_device(std::string_view text) {
  if (text == "auto") return {DeviceKind::kAuto, false, {}};
  if (text == "cpu") return {DeviceKind::kCpu, false, {}};
  if (text == "cuda") return {DeviceKind::kGpus, false, {{0, 0}}};
  if (!text.starts_with(kGpuPrefix)) refuse_device(text);
  const std::string_view list = text.substr(kGpuPrefix.size());
  if (list == "all") return {DeviceKind::kGpus, true, {}};
  return {DeviceKind::kGpus, false, parse_gpu_list(list, text)};
}

std::string device_name(std::span<const int> gpus) {
  std::vector<GpuRange> ranges;
  for (const int gpu : gpus) {
    if (!ranges.empty() && ranges.back().last + 1 == gpu) {
      ranges.back().last = gpu;
    } else {
      ranges.push_back({gpu, gpu});
    }
  }
  if (ranges.empty()) return "cpu";
  std::string name(kGpuPrefix);
  for (const GpuRange& range : ranges) {
    if (&range != &ranges.front()) name += ',';
    name += range_text(range);
  }
  return name;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace olrank
