#include "serve/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
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
  return got > 0 ? fmt::format("process {}", std::string(text, static_cast<std::size_t>(got)))
                 : std::string("another process");
}

}  // namespace

StateFolder::StateFolder(const fs::path& path) : path_(path) {
  make_folder(path_);
  const fs::path file = path_ / "lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw IoError("write", file.string(), errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = holder_of(lock_);
    ::close(lock_);
    throw IoError(fmt::format("{}: The state is in use by {}; stop it or choose another folder.",
                              path_.string(), holder));
  }
  const std::string number = fmt::format("{}", ::getpid());
  // The number is for messages only, so that a full disk need not keep a service from starting.
  if (::ftruncate(lock_, 0) == 0 && ::pwrite(lock_, number.data(), number.size(), 0) < 0) errno = 0;
}

StateFolder::~StateFolder() {
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
