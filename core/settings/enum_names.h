#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

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

}  // namespace olrank
