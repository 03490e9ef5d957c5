#include "report/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace olrank {
namespace {

constexpr const char* kMinus = "−";  // U+2212

/// Commas between thousands in front of the point.
std::string separated(std::string digits) {
  const bool negative = digits.front() == '-';
  std::size_t place = std::min(digits.find('.'), digits.size());
  while (place > (negative ? 4U : 3U)) {
    place -= 3;
    digits.insert(place, 1, ',');
  }
  return with_minus(std::move(digits));
}

}  // namespace

std::string with_minus(std::string number) {
  if (!number.empty() && number.front() == '-') number.replace(0, 1, kMinus);
  return number;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "none";
  const double size = std::abs(value);
  if (size >= 1e3 && size < 1e15) return separated(fmt::format("{}", std::llround(value)));
  return with_minus(fmt::format("{:.4g}", value));
}

std::string fixed_number(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  std::string text = fmt::format("{:.{}f}", value, digits);
  // A value that rounds to 0 has no sign.
  if (text.find_first_of("123456789") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return separated(std::move(text));
}

std::string estimate_text(const MeanInterval& estimate, int digits) {
  std::string text = fixed_number(estimate.mean, digits);
  if (std::isfinite(estimate.half_width)) text += " ± " + fixed_number(estimate.half_width, digits);
  return text;
}

std::string plain_estimate(const MeanInterval& estimate, int digits, bool with_sign,
                           std::string_view between) {
  std::string text = with_sign ? fmt::format("{:+.{}f}", estimate.mean, digits)
                               : fmt::format("{:.{}f}", estimate.mean, digits);
  if (std::isfinite(estimate.half_width))
    text += fmt::format("{}{:.{}f}", between, estimate.half_width, digits);
  return text;
}

std::string meaning_of_intervals(const std::string& units) {
  return fmt::format("± is half the width of the 95 % t interval of the mean over {}", units);
}

}  // namespace olrank
