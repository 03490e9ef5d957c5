#include "core/io/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "core/error.h"

namespace olrank {

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "olrank-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw IoError("create the folder", pattern, errno);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace olrank
