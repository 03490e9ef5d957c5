#include "core/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "core/error.h"

namespace olrank {
namespace {

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
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

void FileLock::release() {
  if (descriptor_ < 0) return;
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && is_at(descriptor_, file_)) ::unlink(file_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace olrank
