#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace olrank {

/// The words by which users name an enumeration's values. Specialised beside each enumeration:
///   template <> struct EnumNames<Fruit> {
///     static constexpr std::array values = names_in_order<Fruit>("apple", "pear");
///   };
template <class Enum>
struct EnumNames;

/// Each value, from 0 on, with its name.
template <class Enum, class... Names>
constexpr auto names_in_order(const Names&... names) {
  int next = 0;
  return std::array{std::pair{static_cast<Enum>(next++), std::string_view(names)}...};
}

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

}  // namespace olrank
