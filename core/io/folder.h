#pragma once

#include <filesystem>

namespace olrank {

/// The folder with all above it; one that is there already is fine. Throws IoError.
void make_folder(const std::filesystem::path& folder);

/// The folder with all that is in it; none is fine. Throws IoError.
void remove_folder(const std::filesystem::path& folder);

}  // namespace olrank
