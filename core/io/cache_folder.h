#pragma once

#include <filesystem>

namespace olrank {

/// Where binary copies of data lie unless told otherwise: $XDG_CACHE_HOME/olrank, else ~/.cache/olrank;
/// empty when the user has neither. The folder need not exist yet.
std::filesystem::path user_cache_folder();

}  // namespace olrank
