#pragma once

#include <string>
#include <vector>

#include "apps/command_outline.h"

namespace olrank {

/// A script that completes commands, flags, values from a list, and file names.
std::string bash_completion(const std::vector<OutlinedCommand>& commands);
std::string zsh_completion(const std::vector<OutlinedCommand>& commands);

}  // namespace olrank
