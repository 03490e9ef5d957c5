#include "serve/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "core/error.h"
#include "core/io/mapped_memory.h"

namespace olrank {

int open_own_file(const std::filesystem::path& path, int flags) {
  const auto refuse = [&] {
    throw IoError(
        fmt::format("{}: A state folder holds regular files only, but this is something else, such "
                    "as a symbolic link. Remove it, or choose another folder.",
                    path.string()));
  };
  // Without O_NONBLOCK, a FIFO would wait for its other end.
  const int descriptor = ::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (descriptor < 0 && (errno == ENOENT || errno == EEXIST)) return -1;
  if (descriptor < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) refuse();
  if (descriptor < 0)
    throw IoError((flags & O_ACCMODE) == O_RDONLY ? "read" : "write", path.string(), errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    refuse();
  }
  return descriptor;
}

std::optional<std::string> read_own_file(const std::filesystem::path& path) {
  const int descriptor = open_own_file(path, O_RDONLY);
  if (descriptor < 0) return std::nullopt;
  try {
    const MappedMemory file = MappedMemory::of_descriptor(descriptor, path);
    ::close(descriptor);
    return std::string(file.text());
  } catch (const std::bad_alloc&) {
    throw IoError(fmt::format("{}: The file is larger than the memory.", path.string()));
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

bool names_open_file(const std::filesystem::path& path, int descriptor) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(descriptor, &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

std::filesystem::path unused_path(const std::filesystem::path& path) {
  std::filesystem::path unused = path;
  std::error_code failed;
  for (int number = 2;
       std::filesystem::symlink_status(unused, failed).type() != std::filesystem::file_type::not_found;
       ++number) {
    unused = fmt::format("{}.{}", path.string(), number);
  }
  return unused;
}

}  // namespace olrank
