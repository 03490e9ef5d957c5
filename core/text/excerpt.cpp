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
  if (text.size() <= most) return printable(text);
  std::size_t end = most - tail;
  while (end > 0 && continues(text[end])) --end;
  std::size_t begin = text.size() - tail;
  while (begin < text.size() && continues(text[begin])) ++begin;
  return printable(text.substr(0, end)) + "…" + printable(text.substr(begin));
}

}  // namespace olrank
