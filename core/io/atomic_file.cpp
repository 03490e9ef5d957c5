#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::string_view kTemporary = ".tmp-";

std::string temporary_name(const std::filesystem::path& target) {
  // Process ID and a counter make the name unique within the folder.
  static std::atomic<unsigned> counter{0};
  const std::filesystem::path folder = target.parent_path();
  return (folder / fmt::format(".{}{}{}-{}", target.filename().string(), kTemporary, ::getpid(), counter++))
      .string();
}

/// Two numbers follow kTemporary.
bool is_temporary_end(std::string_view end) {
  const std::size_t dash = end.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < end.size() &&
         end.find_first_not_of("0123456789-") == std::string_view::npos &&
         end.find('-', dash + 1) == end.npos;
}

/// Follows symbolic links to what a path leads to. Throws IoError for a link that leads nowhere.
std::filesystem::path followed(const std::filesystem::path& target) {
  std::error_code error;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(target, error))) return target;
  // Links of open pipes and sockets, as in /proc/self/fd, name no file, but can be opened.
  const std::filesystem::file_status status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return target;
  std::filesystem::path file = std::filesystem::canonical(target, error);
  if (!error) return file;
  throw_error<IoError>("Cannot write {}: it is a symbolic link that leads to no file.", target.string());
}

/// Whether bytes go to the target itself: a pipe or a character device cannot be replaced.
bool is_stream(const std::filesystem::path& target) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(target, error).type();
  if (type == std::filesystem::file_type::block) {
    throw_error<IoError>("Cannot write {}: it is a block device.", target.string());
  }
  return type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo ||
         type == std::filesystem::file_type::socket;
}

constexpr int kLongestNote = 64;
/// Who takes or gives up a shared lock holds it alone for a moment, so others wait for longer than that.
constexpr std::chrono::milliseconds kPause{10};
constexpr int kTries = 30;
/// is_held_alone() shares a lock for a moment, too.
constexpr int kTriesAlone = 3;

/// False if the file has been removed or replaced since it was opened.
bool is_at(int descriptor, const std::filesystem::path& path) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(descriptor, &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

std::string note_in(int descriptor) {
  char text[kLongestNote];
  const ssize_t got = ::pread(descriptor, text, sizeof text, 0);
  return got > 0 ? std::string(text, got) : std::string();
}

/// Only messages and shared locks use the note, so a full disk does not prevent a lock.
void write_note(int descriptor, const std::string& note) {
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, note.data(), note.size(), 0) < 0) errno = 0;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(followed(target)) {
  std::error_code ignored;                                                     // open() reports errors
  if (std::filesystem::is_directory(target_, ignored)) fail("write", EISDIR);  // rather than after the work
  if (!is_stream(target_)) temporary_ = temporary_name(target_);
  descriptor_ = temporary_.empty()
                    ? ::open(target_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC)
                    : ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("write", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const std::string& action, int error_number) const {
  throw IoError(action, target_.string(), error_number);
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("write", errno);
    }
    bytes.remove_prefix(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0 && !(temporary_.empty() && errno == EINVAL)) fail("flush", errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("close", errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace", errno);
  temporary_.clear();
  // The folder records the rename, so it is flushed too.
  const std::filesystem::path path = target_.parent_path();
  const Descriptor folder(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) fail("flush the folder of", errno);
  if (::fsync(folder.number()) != 0 && errno != EINVAL) fail("flush the folder of", errno);
}

bool is_temporary(std::string_view name) {
  const std::size_t at = name.rfind(kTemporary);
  return name.starts_with('.') && at != std::string_view::npos && at > 1 &&
         is_temporary_end(name.substr(at + kTemporary.size()));
}

bool is_temporary_of(std::string_view name, std::string_view target) {
  return is_temporary(name) && name.substr(1, name.rfind(kTemporary) - 1) == target;
}

void write_file_atomically(const std::filesystem::path& target, std::string_view bytes) {
  AtomicFile file(target);
  file.write(bytes);
  file.commit();
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  constexpr std::size_t kLargestPipe = std::size_t{1} << 30;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) throw IoError("read", path.string(), errno);
  const bool is_regular = S_ISREG(status.st_mode);
  if (!is_regular) max_bytes = std::min(max_bytes, kLargestPipe);
  const auto refuse = [&] {
    throw_error<IoError>("{}: The file is larger than {} bytes, the most that can be read from {}.",
                         path.string(), max_bytes, is_regular ? "such a file" : "a pipe or device");
  };
  std::string bytes;
  if (is_regular) {
    if (static_cast<std::size_t>(status.st_size) > max_bytes) refuse();
    bytes.reserve(status.st_size);
  }
  char chunk[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.number(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("read", path.string(), errno);
    if (got == 0) break;
    if (static_cast<std::size_t>(got) > max_bytes - bytes.size()) refuse();
    bytes.append(chunk, got);
  }
  return bytes;
}

FileLock::Outcome FileLock::take(const std::filesystem::path& file, Mode mode, const std::string& note) {
  release();
  file_ = file;
  for (int tries = 0;; ++tries) {
    descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) throw IoError("lock", file.string(), errno);
    const Outcome outcome = try_once(mode, note);
    // The previous holder may have removed the file between open() and flock().
    const bool removed = !is_at(descriptor_, file);
    if (!removed && outcome == Outcome::kTaken) return outcome;
    ::close(descriptor_);
    descriptor_ = -1;
    if (outcome == Outcome::kUnsupported) {
      ::unlink(file.c_str());
      return outcome;
    }
    if (!removed && tries >= (mode == Mode::kAlone ? kTriesAlone : kTries)) return outcome;
    if (!removed) std::this_thread::sleep_for(kPause);
  }
}

FileLock::Outcome FileLock::try_once(Mode mode, const std::string& note) {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) {
    write_note(descriptor_, note);
    if (mode == Mode::kAlone) return Outcome::kTaken;
  } else if (errno != EWOULDBLOCK) {
    return Outcome::kUnsupported;
  }
  const bool shared = mode == Mode::kShared && ::flock(descriptor_, LOCK_SH | LOCK_NB) == 0;
  holder_ = note_in(descriptor_);
  return shared && holder_ == note ? Outcome::kTaken : Outcome::kHeld;
}

bool FileLock::is_held_alone(const std::filesystem::path& file) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return opened.is_open() && ::flock(opened.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void FileLock::release() {
  if (descriptor_ < 0) return;
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && is_at(descriptor_, file_)) ::unlink(file_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace olrank
