#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// A file of a service, asked for again and again.
class HttpFile {
 public:
  /// `url` is http://HOST[:PORT]; `token` may be empty. Throws InvalidArgument for another scheme.
  HttpFile(std::string_view url, std::string path, std::string token,
           std::chrono::milliseconds timeout = std::chrono::seconds(5));

  std::string url() const;
  /// Its bytes; nothing if they are those of the last time. Throws IoError if they cannot be had at the
  /// moment, and another Error if the service refuses.
  std::optional<std::string> fetch();

 private:
  std::string host_;
  std::string port_;
  std::string path_;
  std::string token_;
  std::chrono::milliseconds timeout_;
  std::string tag_;
};

}  // namespace olrank
