#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace olrank {

namespace detail {

/// std::from_chars on [begin, end), but a number too small for float becomes zero, and one too large
/// infinity.
float parse_float_slowly(const char* begin, const char* end);

inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline unsigned digit_of(char c) {
  return static_cast<unsigned>(static_cast<unsigned char>(c)) - '0';
}

/// Reads `e` and digits at `p` into `exponent`; `p` itself when there are none.
inline const char* append_exponent(const char* p, std::int64_t& exponent) {
  const char* q = p + 1;
  const bool minus = *q == '-';
  q += minus || *q == '+';
  if (digit_of(*q) > 9) return p;
  std::int64_t written = 0;
  for (unsigned digit = 0; (digit = digit_of(*q)) <= 9; ++q) {
    if (written < 100'000) written = written * 10 + digit;
  }
  exponent += minus ? -written : written;
  return q;
}

}  // namespace detail

/// Reads the decimal number at `p` as the nearest float, the same bits that std::from_chars gives, and
/// returns the place behind it; nullptr when no number stands there (nan and inf are none). A number too
/// large for float gives infinity. The text must end in a character that cannot be part of a number.
///
/// Nearly all numbers take the short way: at most 18 digits as an integer m < 2^63 and a power of ten that
/// double holds exactly, so that double(m) and one multiplication or division err by less than 1 ulp of
/// double each (Clinger, "How to read floating point numbers accurately", PLDI 1990). Rounding that to
/// float is right unless the double lies within those 2 ulp of the middle between two floats; then, and for
/// what is below float's normal range, std::from_chars decides.
[[gnu::always_inline]] inline const char* parse_float(const char* p, float& value) {
  const char* const begin = p;
  const std::uint64_t sign = *p == '-';
  p += sign;
  std::uint64_t mantissa = 0;
  const char* const digits = p;
  for (unsigned digit = 0; (digit = detail::digit_of(*p)) <= 9; ++p) mantissa = mantissa * 10 + digit;
  std::int64_t digit_count = p - digits;
  std::int64_t exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    for (unsigned digit = 0; (digit = detail::digit_of(*p)) <= 9; ++p) mantissa = mantissa * 10 + digit;
    exponent = fraction - p;
    digit_count -= exponent;
  }
  if (digit_count == 0) [[unlikely]]
    return nullptr;
  double number = static_cast<double>(static_cast<std::int64_t>(mantissa));
  if ((*p | 0x20) == 'e') [[unlikely]] {
    p = detail::append_exponent(p, exponent);
    if (exponent > 0) {
      number *= detail::kPowersOfTen[exponent <= 22 ? exponent : 0];
    }
  }
  const std::int64_t places = -exponent;
  if (places > 0) number /= detail::kPowersOfTen[places <= 22 ? places : 0];
  // Double has 29 bits more than float; these alone are set in the middle between two floats.
  const std::uint64_t surplus = std::bit_cast<std::uint64_t>(number) & ((1U << 29) - 1);
  const bool right =
      (digit_count <= 18) & (places <= 22) & (places >= -22) & (surplus - ((1U << 28) - 4) > 8) &
      (((number >= double{std::numeric_limits<float>::min()}) & (number < 0x1p127)) | (mantissa == 0));
  if (right) [[likely]] {
    value = static_cast<float>(std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) | sign << 63));
  } else {
    value = detail::parse_float_slowly(begin, p);
  }
  return p;
}

}  // namespace olrank
