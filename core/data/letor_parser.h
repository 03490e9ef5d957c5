#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/doc_table.h"
#include "core/io/mapped_memory.h"

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

/// Grades are small integers: gain 2^grade − 1 must stay a number one can add up.
inline constexpr int kLargestGrade = 31;
inline constexpr std::int64_t kLargestFeature = 4'294'967'295;

/// A position in a text. Line and column start at 1; the line is relative to the block.
struct TextPlace {
  std::int64_t line = 0;
  std::int64_t column = 0;
};

/// The documents of a piece of LETOR text. Feature values are kept as runs, so that the block never takes
/// more than its rows of the dense matrix would, whatever the feature numbers are: for each document
///   kDense + length and as many float values of its first features, or
///   number of runs, then for each run: index of its first feature, length, that many float values.
/// A single zero between two runs is filled in; two or more end a run. The runs lie in pages of the block's
/// own, which return to the system with it.
struct LetorBlock {
  /// Set in the first word of a document that is a single run from the first feature. A run that long, of
  /// more than 8 GB of text, counts its words as any other.
  static constexpr std::uint32_t kDense = std::uint32_t{1} << 31;

  struct Failure {
    TextPlace place;  // line counted from the block's first, which is 1
    std::string sentence;
  };

  std::int64_t lines = 0;
  std::int64_t text_bytes = 0;
  std::vector<std::uint8_t> grades;  // [docs]
  MappedMemory runs;                 // 32-bit words as above
  std::span<const std::byte> moved;  // the runs, if a reader moved them to memory of its own
  std::int64_t largest_feature = 0;
  TextPlace largest_feature_place;
  std::int64_t nonzeros = 0;  // values that are not zero
  std::int64_t null_values = 0;
  TextPlace first_null;
  std::optional<Failure> failure;  // of the first malformed line; the lines after it are not parsed

  std::int64_t docs() const { return std::ssize(grades); }

  /// Which documents belong together, and what they are called.
  struct Names {
    std::vector<QueryRun> query_runs;  // their queries are numbers into the names of queries
    std::string qid_text;              // of queries in order of first appearance in the block
    std::vector<std::uint64_t> qid_ends;
    std::string doc_text;
    std::vector<std::uint64_t> doc_ends;  // empty when no document has a name

    PackedTexts qids() const { return {qid_text, qid_ends}; }
    std::int64_t bytes() const;
  };
  Names names;
  /// Appends the names of its documents to those of the documents before it, which may have none so far.
  void append_doc_names(std::size_t docs_before, std::string& text, std::vector<std::uint64_t>& ends) const;
};

/// Reads lines `grade qid:ID feature:value … # comment`. `text` holds whole lines: its last character is a
/// line feed, or it is empty.
LetorBlock parse_letor_block(std::string_view text);

}  // namespace olrank
