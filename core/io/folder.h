#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace olrank {

/// Whether a name can be that of a folder of results: letters, digits and - _ . + =, without a leading dot.
bool is_folder_name(std::string_view name);

/// Creates the folder and its parents, if they do not exist. Throws IoError.
void make_folder(const std::filesystem::path& folder);

/// The first symbolic link among the parts of root/folder below root.
std::optional<std::filesystem::path> symbolic_link_below(const std::filesystem::path& root,
                                                         const std::filesystem::path& folder);

/// Removes the named files from root/folder, with the temporary files of their atomic writes, and then the
/// folders below root that this leaves empty; anything else stays. A file that is a symbolic link is
/// removed itself. Throws IoError, also for a symbolic link among the folders.
void remove_files(const std::filesystem::path& root, const std::filesystem::path& folder,
                  std::span<const std::string_view> files);

/// A temporary folder, removed with its contents.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The default folder for binary copies of data: $XDG_CACHE_HOME/olrank, else ~/.cache/olrank; empty if
/// neither variable is set. The folder may not exist yet.
std::filesystem::path user_cache_folder();

}  // namespace olrank
