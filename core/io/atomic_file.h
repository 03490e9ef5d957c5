#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace olrank {

/// Writes a file atomically: bytes go to a hidden temporary file in the same folder; commit() flushes it to
/// disk, renames it to the target and flushes the folder. Without commit(), the temporary file is removed
/// and the target is unchanged. A killed process leaves at most the temporary file.
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
  std::string temporary_;
  int descriptor_ = -1;
};

/// Whether a file of this name may be the temporary file of writing `target`, both without folders.
bool is_temporary_of(std::string_view name, std::string_view target);
/// Whether a file of this name may be the temporary file of some target.
bool is_temporary(std::string_view name);

void write_file_atomically(const std::filesystem::path& target, std::string_view bytes);

/// Reads the whole file.
std::string read_file(const std::filesystem::path& path);

}  // namespace olrank
