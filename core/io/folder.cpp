#include "core/io/folder.h"

#include "core/error.h"

namespace olrank {

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw IoError("create the folder", folder.string(), failed.value());
}

void remove_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::remove_all(folder, failed);
  if (failed) throw IoError("remove", folder.string(), failed.value());
}

}  // namespace olrank
