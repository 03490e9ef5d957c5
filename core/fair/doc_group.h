#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace olrank {

/// A group of documents that exposure is shared between; C and those behind it have the next numbers.
enum class DocGroup : std::uint8_t { kA = 0, kB = 1 };

constexpr std::size_t kMostGroups = 6;
constexpr std::size_t kMostPairs = kMostGroups * (kMostGroups - 1) / 2;

constexpr std::size_t index_of(DocGroup group) {
  return static_cast<std::size_t>(group);
}

constexpr char letter_of(DocGroup group) {
  return static_cast<char>('A' + index_of(group));
}

/// None unless the text is the letter of one of the first `groups`.
template <class Text>
constexpr std::optional<DocGroup> group_named(const Text& text, std::size_t groups) {
  if (text.size() != 1 || text[0] < 'A' || text[0] >= static_cast<char>('A' + groups)) return std::nullopt;
  return static_cast<DocGroup>(text[0] - 'A');
}

/// "A or B", "A, B or C", …
inline std::string letters_of(std::size_t groups) {
  std::string text;
  for (std::size_t group = 0; group < groups; ++group) {
    if (group > 0) text += group + 1 == groups ? " or " : ", ";
    text += letter_of(static_cast<DocGroup>(group));
  }
  return text;
}

}  // namespace olrank
