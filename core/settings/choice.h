#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {

/// The value that `text` names; `option` is the flag or option in the message. Throws InvalidArgument that
/// lists the names.
template <class Enum>
Enum parse_choice(std::string_view option, const std::string& text) {
  if (const auto value = value_named<Enum>(text)) return *value;
  std::vector<std::string> names;
  names.reserve(EnumNames<Enum>::values.size());
  for (const auto& [value, name] : EnumNames<Enum>::values) names.emplace_back(name);
  throw_error<InvalidArgument>("{} {}", option, must_be_one_of(text, names));
}

}  // namespace olrank
