#pragma once

#include <string>
#include <vector>

#include "apps/command_outline.h"

namespace olrank {

/// The page olrank(1) in the language of man: commands, their flags, and the settings that several share.
std::string manual_page(const std::vector<OutlinedCommand>& commands);

}  // namespace olrank
