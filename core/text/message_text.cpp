#include "core/text/message_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

namespace olrank {
namespace {

// Base64 has these.
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Whether the byte goes on with a UTF-8 character, of which a cut must not leave half.
bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

char folded(char c) {
  if (c == '-') return '_';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

/// Whether `name` is `longer` without its first words: "--eval-every" of "--protocol-eval-every".
bool is_tail_of(std::string_view name, std::string_view longer) {
  while (name.starts_with('-')) name.remove_prefix(1);
  if (name.empty() || longer.size() <= name.size()) return false;
  const std::string_view tail = longer.substr(longer.size() - name.size());
  const char before = folded(longer[longer.size() - name.size() - 1]);
  return (before == '_' || before == '.') && edit_distance(name, tail) == 0;
}

/// Whether `name` is how `longer` begins; one letter begins too much.
bool is_begin_of(std::string_view name, std::string_view longer) {
  return name.size() >= 2 && longer.size() > name.size() && !name.starts_with('-') &&
         edit_distance(name, longer.substr(0, name.size())) == 0;
}

/// The first of the nearest candidates and its edits.
std::pair<std::string, int> nearest(std::string_view name, std::span<const std::string> candidates) {
  std::pair<std::string, int> found{"", std::numeric_limits<int>::max()};
  for (const std::string& candidate : candidates) {
    const bool is_part = is_tail_of(name, candidate) || is_begin_of(name, candidate);
    const int edits = is_part ? 1 : edit_distance(name, candidate);
    if (edits < found.second) found = {candidate, edits};
  }
  return found;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string excerpt(std::string_view text, std::size_t most, std::size_t tail) {
  std::string shown = printable(text);
  if (shown.size() <= most) return shown;
  std::size_t end = most - tail;
  while (end > 0 && continues(shown[end])) --end;
  std::size_t begin = shown.size() - tail;
  while (begin < shown.size() && continues(shown[begin])) ++begin;
  return shown.substr(0, end) + "…" + shown.substr(begin);
}

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: three rows of the dynamic programme, since a swap looks two rows back.
  const std::size_t columns = b.size() + 1;
  std::vector<int> before_last(columns);
  std::vector<int> last(columns);
  std::vector<int> current(columns);
  for (std::size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < columns; ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1])) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  return nearest(name, candidates).first;
}

std::string near_name(std::string_view name, std::span<const std::string> candidates) {
  const std::size_t dashes = std::min(name.find_first_not_of('-'), name.size());
  const std::size_t most = (name.size() - dashes) / 3;
  const auto [found, edits] = nearest(name, candidates);
  return edits <= static_cast<int>(most) ? found : "";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string near = near_name(name, candidates);
  return near.empty() ? "No known name is close to it." : fmt::format("Did you mean '{}'?", near);
}

std::string must_be_one_of(std::string_view text, std::span<const std::string> choices) {
  const std::string near = near_name(text, choices);
  return fmt::format("must be {}, not '{}'.{}", joined(choices, " or "), excerpt(text),
                     near.empty() ? "" : fmt::format(" Did you mean '{}'?", near));
}

std::string joined(std::span<const std::string> names, std::string_view last_separator) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? std::string(last_separator) : std::string(", ");
    text += names[i];
  }
  return text;
}

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

std::string base64_of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t begin = 0; begin < bytes.size(); begin += 3) {
    const std::string_view group = bytes.substr(begin, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8U | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t begin = 0; begin < text.size(); begin += 4) {
    std::string_view group = text.substr(begin, 4);
    if (begin + 4 == text.size()) {
      while (group.size() > 2 && group.back() == '=') group.remove_suffix(1);
    }
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t digit = k < group.size() ? kDigits.find(group[k]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      bits = bits << 6U | static_cast<std::uint32_t>(digit);
    }
    const std::size_t count = group.size() - 1;
    // The digits' bits beyond the last byte must be zero.
    if ((bits & ((1U << (8 * (3 - count))) - 1U)) != 0) return std::nullopt;
    for (std::size_t k = 0; k < count; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k) & 255U);
  }
  return bytes;
}

}  // namespace olrank
