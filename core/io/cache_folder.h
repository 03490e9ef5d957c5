#pragma once

#include <filesystem>

namespace olrank {

/// The default folder for binary copies of data: $XDG_CACHE_HOME/olrank, else ~/.cache/olrank; empty if
/// neither variable is set. The folder may not exist yet.
std::filesystem::path user_cache_folder();

}  // namespace olrank
