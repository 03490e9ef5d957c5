#include "core/data/letor_number.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace olrank::detail {
namespace {

/// Whether a number outside float's range lies above it, by the place of its first digit that is not 0.
bool is_large(std::string_view text) {
  if (text.front() == '-') text.remove_prefix(1);
  const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, exponent_at);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_not_of("0.");
  if (first == std::string_view::npos) return false;
  const std::int64_t place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  std::int64_t exponent = 0;
  if (exponent_at < text.size()) {
    std::string_view written = text.substr(exponent_at + 1);
    if (written.front() == '+') written.remove_prefix(1);
    const auto result = std::from_chars(written.data(), written.data() + written.size(), exponent);
    if (result.ec == std::errc::result_out_of_range) return written.front() != '-';
  }
  return exponent > -place;
}

}  // namespace

float parse_float_slowly(const char* begin, const char* end) {
  float value = 0.0F;
  const std::from_chars_result result = std::from_chars(begin, end, value);
  if (result.ec == std::errc::result_out_of_range) {
    value = is_large({begin, static_cast<std::size_t>(end - begin)})
                ? std::numeric_limits<float>::infinity()
                : 0.0F;
    return *begin == '-' ? -value : value;
  }
  return value;
}

}  // namespace olrank::detail
