#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// The two named protocols: what the papers' text says, and what their authors' code does. A protocol sets
/// defaults; every one of them can be set by itself.
enum class ProtocolName { kPaper, kReference };

template <>
struct EnumNames<ProtocolName> {
  static constexpr std::array values = {std::pair{ProtocolName::kPaper, std::string_view("paper")},
                                        std::pair{ProtocolName::kReference, std::string_view("reference")}};
};

}  // namespace olrank
