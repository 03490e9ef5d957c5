#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace olrank {

/// A line of JSON for each answer: {"time", "method", "path", "status", "seconds", "bytes"}. It names no
/// documents, queries or users. Used by one thread.
class AccessLog {
 public:
  /// Appends to the file, or to standard output for "-". Throws IoError if it cannot be opened.
  explicit AccessLog(const std::string& path);

  void add(std::string_view method, std::string_view path, int status, double seconds, std::size_t bytes);

 private:
  struct Closer {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace olrank
