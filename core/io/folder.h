#pragma once

#include <filesystem>

namespace olrank {

/// Creates the folder and its parents, if they do not exist. Throws IoError.
void make_folder(const std::filesystem::path& folder);

/// Removes the folder with its contents, if it exists. Throws IoError.
void remove_folder(const std::filesystem::path& folder);

}  // namespace olrank
