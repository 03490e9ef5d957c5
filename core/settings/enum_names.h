#pragma once

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text/message_text.h"

namespace olrank {

/// The words by which users name an enumeration's values. Specialised beside each enumeration:
///   template <> struct EnumNames<Fruit> { static constexpr std::array values = {
///       std::pair{Fruit::kApple, std::string_view("apple")}, …}; };
template <class Enum>
struct EnumNames;

template <class Enum>
std::string_view name_of(Enum value) {
  for (const auto& [known, name] : EnumNames<Enum>::values) {
    if (known == value) return name;
  }
  return "?";
}

template <class Enum>
std::optional<Enum> value_named(std::string_view name) {
  for (const auto& [value, known] : EnumNames<Enum>::values) {
    if (known == name) return value;
  }
  return std::nullopt;
}

/// The value that `text` names; `option` is the flag or option in the message. Throws InvalidArgument that
/// lists the names.
template <class Enum>
Enum parse_choice(std::string_view option, const std::string& text) {
  if (const auto value = value_named<Enum>(text)) return *value;
  std::vector<std::string> names;
  names.reserve(EnumNames<Enum>::values.size());
  for (const auto& [value, name] : EnumNames<Enum>::values) names.emplace_back(name);
  throw InvalidArgument(fmt::format("{} {}", option, must_be_one_of(text, names)));
}

}  // namespace olrank
