#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/protocol.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// When a user of the dependent click model decides whether to go on.
enum class StopDraw { kAfterClick, kEveryDoc };

/// Which simulated users click.
struct ClickSettings {
  std::vector<std::string> models = {"perfect", "navigational", "informational"};
  StopDraw stop = StopDraw::kAfterClick;

  static const Schema& schema();
  static ClickSettings defaults(ProtocolName protocol);
};

template <>
struct EnumNames<StopDraw> {
  static constexpr std::array values = {std::pair{StopDraw::kAfterClick, std::string_view("after-click")},
                                        std::pair{StopDraw::kEveryDoc, std::string_view("every-doc")}};
};

}  // namespace olrank
