#include "core/text/base64.h"

#include <cstdint>

namespace olrank {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

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
