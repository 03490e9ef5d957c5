#pragma once

#include <string>

namespace olrank {

/// Every setting of configuration files and its table as JSON: {"tables": [{"table", "help", "repeated",
/// "settings": [{"key", "kind", "help", "unit", "choices", "lowest", "above_lowest", "highest",
/// "below_highest", "default"}]}]}. "kind" is switch, integer, real, text or real-or-auto, or a list:
/// integers, reals, texts or switches.
std::string settings_json();

}  // namespace olrank
