#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/promise.h"

namespace olrank::fuzz {

/// Bytes for a reader that opens a path. They are in memory and have no name in a folder.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    promise(descriptor_ >= 0 &&
            ::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

/// A folder for readers that want one, in memory where the machine has such folders.
class MemoryFolder {
 public:
  MemoryFolder() {
    std::string pattern = "/dev/shm/olrank-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      pattern = (std::filesystem::temp_directory_path() / "olrank-fuzz-XXXXXX").string();
      promise(::mkdtemp(pattern.data()) != nullptr);
    }
    path_ = pattern;
  }
  ~MemoryFolder() { std::filesystem::remove_all(path_); }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove_all(entry.path());
  }
  void put(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace olrank::fuzz
