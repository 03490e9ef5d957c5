#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/settings/enum_names.h"
#include "core/text/nearest.h"

namespace olrank {

/// The value that a flag's text names. Throws InvalidArgument with all names and the nearest.
template <class Enum>
Enum parse_choice(const std::string& flag, const std::string& text) {
  if (const auto value = value_named<Enum>(text)) return *value;
  std::vector<std::string> names;
  names.reserve(EnumNames<Enum>::values.size());
  for (const auto& [value, name] : EnumNames<Enum>::values) names.emplace_back(name);
  throw InvalidArgument(fmt::format("{} is {}, not '{}'; the nearest is '{}'.", flag, joined(names, " or "),
                                    text, nearest_name(text, names)));
}

}  // namespace olrank
