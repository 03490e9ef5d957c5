#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace olrank {

/// A file that appears whole or not at all: bytes go to a hidden neighbour, and commit() flushes it to the
/// disk, renames it over the target and flushes the folder. Without commit() the neighbour is removed and
/// whatever stood at the target stays. A run that is killed leaves at most the neighbour behind.
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

void write_file_atomically(const std::filesystem::path& target, std::string_view bytes);

/// The whole file as bytes.
std::string read_file(const std::filesystem::path& path);

}  // namespace olrank
