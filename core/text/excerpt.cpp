#include "core/text/excerpt.h"

#include <fmt/format.h>

namespace olrank {
namespace {

/// Whether the byte goes on with a UTF-8 character, of which a cut must not leave half.
bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
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

}  // namespace olrank
