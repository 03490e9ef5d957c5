#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace olrank {

/// Writes a file atomically: bytes go to a hidden temporary file in the same folder; commit() flushes it to
/// disk, renames it to the target and flushes the folder. Without commit(), the temporary file is removed
/// and the target is unchanged. A killed process leaves at most the temporary file. Of a symbolic link the
/// file that it leads to is written; a pipe or character device is written to as it is, byte by byte.
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

}  // namespace olrank
