#include "core/text/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace olrank {

std::string readable_bytes(double bytes) {
  static constexpr std::array units = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  // A value that would print as 1000.0 of one unit is printed as 1.0 of the next.
  while (bytes >= 999.95 && unit + 1 < units.size()) {
    bytes /= 1000.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  double number = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  std::string unit;
  for (const char* p = rest; p != text.data() + text.size(); ++p) {
    if (*p != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  static constexpr std::array factors = {
      std::pair{"", 1.0},       std::pair{"b", 1.0},     std::pair{"kb", 1e3},     std::pair{"mb", 1e6},
      std::pair{"gb", 1e9},     std::pair{"tb", 1e12},   std::pair{"kib", 1024.0}, std::pair{"mib", 0x1p20},
      std::pair{"gib", 0x1p30}, std::pair{"tib", 0x1p40}};
  for (const auto& [name, factor] : factors) {
    if (unit != name) continue;
    const double bytes = number * factor;
    if (!(bytes >= 1.0 && bytes < 0x1p63)) return std::nullopt;
    return static_cast<std::int64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace olrank
