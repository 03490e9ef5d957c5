#pragma once

#include <nlohmann/json.hpp>
#include <variant>

#include "core/settings/value.h"

namespace olrank {

inline nlohmann::ordered_json setting_json(const SettingValue& value) {
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

}  // namespace olrank
