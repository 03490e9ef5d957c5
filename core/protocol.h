#pragma once

#include "core/settings/enum_names.h"

namespace olrank {

/// The named protocols: what serves users best, the papers' text, and their authors' code. A protocol sets
/// defaults, each of which can be overridden.
enum class ProtocolName { kRecommended, kPaper, kReference };

template <>
struct EnumNames<ProtocolName> {
  static constexpr std::array values = names_in_order<ProtocolName>("recommended", "paper", "reference");
};

}  // namespace olrank
