#include "serve/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

std::string holder_of(int descriptor) {
  char text[32];
  const ssize_t got = ::pread(descriptor, text, sizeof text - 1, 0);
  return got > 0 ? fmt::format("process {}", std::string(text, got)) : std::string("another process");
}

bool is_at(int descriptor, const fs::path& path) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(descriptor, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

StateFolder::StateFolder(const fs::path& path) : path_(path) {
  std::error_code ignored;  // make_folder() reports any error
  created_ = !fs::exists(path_, ignored);
  make_folder(path_);
  // The previous holder may have removed the lock file between our open() and flock().
  do {
    if (lock_ >= 0) ::close(lock_);
    lock();
  } while (!is_at(lock_, lock_file()));
  const std::string pid = fmt::format("{}", ::getpid());
  // Only messages use the process ID, so a full disk does not prevent the start.
  if (::ftruncate(lock_, 0) == 0 && ::pwrite(lock_, pid.data(), pid.size(), 0) < 0) errno = 0;
}

void StateFolder::lock() {
  lock_ = ::open(lock_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw IoError("write", lock_file().string(), errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const std::string holder = holder_of(lock_);
  ::close(lock_);
  throw IoError(fmt::format("{}: The state folder is in use by {}. Stop it or choose another folder.",
                            path_.string(), holder));
}

StateFolder::~StateFolder() {
  std::error_code failed;
  if (!fs::exists(identity_file(), failed) && !failed) {
    ::unlink(lock_file().c_str());
    if (created_) ::rmdir(path_.c_str());  // fails unless empty
  }
  ::close(lock_);
}

std::optional<ServiceIdentity> StateFolder::identity() const {
  if (!fs::exists(identity_file())) return std::nullopt;
  return read_identity(identity_file());
}

void StateFolder::begin(const ServiceIdentity& identity, const std::string& model) const {
  if (!model.empty()) write_file_atomically(this->model(), model);
  write_file_atomically(identity_file(), print_identity(identity));
}

}  // namespace olrank
