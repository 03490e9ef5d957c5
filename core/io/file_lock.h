#pragma once

#include <filesystem>
#include <string>

namespace olrank {

/// An advisory lock (flock) on a file of its own. It dies with the process: a killed one leaves the file,
/// but no lock. The last holder removes the file.
class FileLock {
 public:
  enum class Mode { kAlone, kShared };
  enum class Outcome {
    kTaken,
    kHeld,         // by another process; see holder()
    kUnsupported,  // the file system has no locks
  };

  FileLock() = default;
  ~FileLock() { release(); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Creates the file and locks it. `note` goes into the file, to tell others who holds it. Only processes
  /// with equal notes share a lock. Throws IoError if the file cannot be created or is a symbolic link.
  Outcome take(const std::filesystem::path& file, Mode mode, const std::string& note);
  void release();

  /// Whether a process holds the lock alone; changes nothing. False where the file cannot be read.
  static bool is_held_alone(const std::filesystem::path& file);

  /// The note of the process that holds the lock; empty if unknown.
  const std::string& holder() const { return holder_; }

 private:
  Outcome try_once(Mode mode, const std::string& note);

  std::filesystem::path file_;
  int descriptor_ = -1;
  std::string holder_;
};

}  // namespace olrank
