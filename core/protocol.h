#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// The named protocols: what serves users best, the papers' text, and their authors' code. A protocol sets
/// defaults, each of which can be overridden.
enum class ProtocolName { kRecommended, kPaper, kReference };

template <>
struct EnumNames<ProtocolName> {
  static constexpr std::array values = {
      std::pair{ProtocolName::kRecommended, std::string_view("recommended")},
      std::pair{ProtocolName::kPaper, std::string_view("paper")},
      std::pair{ProtocolName::kReference, std::string_view("reference")}};
};

}  // namespace olrank
