#include "serve/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>

#include "core/io/atomic_file.h"
#include "core/io/mapped_memory.h"
#include "core/throw_error.h"

namespace olrank {

int open_own_file(const std::filesystem::path& path, int flags) {
  const auto refuse = [&] {
    throw_error<IoError>(
        "{}: A state folder holds regular files only, but this is something else, such as a symbolic link. "
        "Remove it, or choose another folder.",
        path.string());
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
  const Descriptor file(open_own_file(path, O_RDONLY));
  if (!file.is_open()) return std::nullopt;
  try {
    return std::string(MappedMemory::of_descriptor(file.number(), path).text());
  } catch (const std::bad_alloc&) {
    throw_error<IoError>("{}: The file is larger than the memory.", path.string());
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

namespace fs = std::filesystem;

fs::path NumberedFiles::path(const fs::path& folder, std::uint64_t number) const {
  return folder / fmt::format("{}{:06}{}", begin, number, end);
}

std::uint64_t NumberedFiles::number_of(const fs::path& path) const {
  const std::string name = path.filename().string();
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
    return 0;
  std::uint64_t number = 0;
  const char* last = name.data() + name.size() - end.size();
  const auto [rest, error] = std::from_chars(name.data() + begin.size(), last, number);
  return error == std::errc() && rest == last ? number : 0;
}

std::vector<fs::path> NumberedFiles::in(const fs::path& folder) const {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (number_of(entry.path()) > 0) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(),
            [this](const fs::path& a, const fs::path& b) { return number_of(a) < number_of(b); });
  return found;
}

void NumberedFiles::set_aside(const fs::path& folder) const {
  for (const fs::path& file : in(folder)) fs::rename(file, unused_path(file.string() + ".set-aside"));
}

}  // namespace olrank
