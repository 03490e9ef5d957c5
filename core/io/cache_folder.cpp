#include "core/io/cache_folder.h"

#include <cstdlib>
#include <string_view>

namespace olrank {

std::filesystem::path user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  // The base-directory specification has relative paths ignored.
  if (cache != nullptr && cache[0] == '/') return std::filesystem::path(cache) / "olrank";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::filesystem::path(home) / ".cache" / "olrank";
  return {};
}

}  // namespace olrank
