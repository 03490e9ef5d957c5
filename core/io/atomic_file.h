#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace olrank {

/// Writes a file atomically: bytes go to a hidden temporary file in the same folder; commit() flushes it to
/// disk, renames it to the target and flushes the folder. Without commit(), the temporary file is removed
/// and the target is unchanged. A killed process leaves at most the temporary file. A symbolic link gets
/// the file written that it leads to; a pipe or character device is written to as it is, byte by byte.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void fail(const std::string& action, int error_number) const;

  std::filesystem::path target_;
  std::string temporary_;  // empty for pipes and devices
  int descriptor_ = -1;
};

/// Whether a file of this name may be the temporary file of writing `target`, both without folders.
bool is_temporary_of(std::string_view name, std::string_view target);
/// Whether a file of this name may be the temporary file of some target.
bool is_temporary(std::string_view name);

void write_file_atomically(const std::filesystem::path& target, std::string_view bytes);

/// Files of JSON and settings are never larger; as values in memory they take several times their size.
inline constexpr std::size_t kLargestJson = std::size_t{64} << 20;

/// Reads the whole file. Throws IoError before reading more than `max_bytes`, and from a pipe or device
/// never more than a gigabyte.
std::string read_file(const std::filesystem::path& path,
                      std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// A file descriptor that is closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (is_open()) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

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
