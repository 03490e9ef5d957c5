#include "core/io/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> entries_of(int folder) {
  std::vector<std::string> names;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(copy), ::closedir);
  if (!listing) {
    ::close(copy);
    return names;
  }
  while (const dirent* entry = ::readdir(listing.get())) names.emplace_back(entry->d_name);
  return names;
}

void remove_from(int folder, const fs::path& path, std::span<const std::string_view> files) {
  for (const std::string& entry : entries_of(folder)) {
    const bool ours = std::any_of(files.begin(), files.end(), [&](std::string_view file) {
      return entry == file || is_temporary_of(entry, file);
    });
    if (ours && ::unlinkat(folder, entry.c_str(), 0) != 0 && errno != ENOENT)
      throw IoError("remove", (path / entry).string(), errno);
  }
}

/// Whether nothing is left there.
bool remove_below(int parent, const fs::path& path, fs::path::const_iterator part,
                  fs::path::const_iterator end, std::span<const std::string_view> files) {
  if (part == end) {
    remove_from(parent, path, files);
    return true;
  }
  const std::string name = part->string();
  const fs::path here = path / name;
  {
    const Descriptor folder(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.is_open() && errno == ENOENT) return true;
    if (!folder.is_open()) throw IoError("remove files from", here.string(), errno);
    if (!remove_below(folder.number(), here, std::next(part), end, files)) return false;
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  throw IoError("remove", here.string(), errno);
}

}  // namespace

bool is_folder_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 100 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '+' || c == '=';
         });
}

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw IoError("create the folder", folder.string(), failed.value());
}

std::optional<fs::path> symbolic_link_below(const fs::path& root, const fs::path& folder) {
  fs::path path = root;
  for (const fs::path& part : folder) {
    path /= part;
    std::error_code missing;
    if (fs::is_symlink(path, missing)) return path;
  }
  return std::nullopt;
}

void remove_files(const fs::path& root, const fs::path& folder, std::span<const std::string_view> files) {
  const Descriptor top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top.is_open() && errno == ENOENT) return;
  if (!top.is_open()) throw IoError("open the folder", root.string(), errno);
  remove_below(top.number(), root, folder.begin(), folder.end(), files);
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "olrank-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw IoError("create the folder", pattern, errno);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  // The base-directory specification has relative paths ignored.
  if (cache != nullptr && cache[0] == '/') return std::filesystem::path(cache) / "olrank";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::filesystem::path(home) / ".cache" / "olrank";
  return {};
}

}  // namespace olrank
