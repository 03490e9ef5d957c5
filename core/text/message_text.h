#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace olrank {

/// "1 trial", "2 trials".
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Foreign texts as a message can show them: what a terminal would act on is written as \x1b.

std::string printable(std::string_view text);

/// printable(), and of a text longer than `most` bytes the beginning, an ellipsis and the last `tail`
/// bytes.
std::string excerpt(std::string_view text, std::size_t most = 40, std::size_t tail = 0);

/// Edits (insert, delete, replace, swap neighbours) that turn one word into the other; upper and lower
/// case count as equal, and so do '-' and '_'.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits, the first on ties; empty without candidates. Missing leading words
/// count as one edit (--eval-every for --protocol-eval-every), and so does a missing end ("exp" for
/// "exponential").
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// The nearest candidate if it may be meant: at most one edit in three letters of the name, dashes before
/// it left out. Empty otherwise: a name of one or two letters has a candidate only in other case.
std::string near_name(std::string_view name, std::span<const std::string> candidates);

/// "Did you mean 'beta'?", or "No known name is close to it."; ends a message about an unknown name.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "must be a, b or c, not 'x'. Did you mean 'b'?", without the question if none is near; what follows the
/// setting or flag in a message.
std::string must_be_one_of(std::string_view text, std::span<const std::string> choices);

/// "a, b and c".
std::string joined(std::span<const std::string> names, std::string_view last_separator = " and ");

/// The bytes of the UTF-8 character at the beginning of a text that is not empty; 0 if there is none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what is beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// "512 bytes", "1.5 MB", "17.2 GB", by powers of 1000.
std::string readable_bytes(double bytes);

/// Parses "8GB", "1.5 GiB", "500 MB", "1000000": a number and B, kB, MB, GB, TB (powers of 1000) or KiB,
/// MiB, GiB, TiB (powers of 1024), case-insensitive; bytes without a unit. Nothing for anything else.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// Bytes as text in the alphabet of RFC 4648, section 4, padded.
std::string base64_of(std::string_view bytes);
/// The bytes of such a text; nothing for any other.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace olrank
