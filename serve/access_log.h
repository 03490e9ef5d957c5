#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// A line of JSON for each answer: {"time", "method", "path", "status", "seconds", "bytes"}, and for a
/// request with a valid header traceparent (W3C Trace Context) "trace_id" and "parent_id". It names no
/// documents, queries or users. Used by one thread.
class AccessLog {
 public:
  /// Appends to the file, or to standard output for "-". Throws IoError if it cannot be opened.
  explicit AccessLog(const std::string& path);

  void add(std::string_view method, std::string_view path, int status, double seconds, std::size_t bytes,
           std::string_view traceparent = {});
  /// Goes on in the file of that name, which is a new one where the old one was moved. A file that cannot
  /// be opened leaves the log where it is, with a warning.
  void reopen();
  bool is_file() const { return file_.get() != stdout; }

 private:
  void open();

  std::string path_;
  struct Closer {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };
  std::unique_ptr<std::FILE, Closer> file_;
};

/// The bearer token in a file: one line. Throws InvalidArgument for an empty or longer file, and for
/// control characters, which no request header can hold.
std::string read_token(const std::filesystem::path& file);

/// A file of a service, asked for again and again.
class HttpFile {
 public:
  /// `url` is http://HOST[:PORT] or https://HOST[:PORT], with the path of a surface or a proxy behind it;
  /// `token` may be empty. `authorities` is a file of certificates that may sign the service's; empty:
  /// those of the system. `timeout` limits each time without progress: a large file may take as long as its
  /// line is slow. Throws InvalidArgument for another scheme.
  HttpFile(std::string_view url, std::string path, std::string token, std::string authorities = "",
           std::chrono::milliseconds timeout = std::chrono::seconds(5));

  std::string url() const;
  /// Its bytes; nothing if they are those of the last time. Throws IoError if they cannot be had at the
  /// moment or a signal ends the process, and another Error if the service refuses.
  std::optional<std::string> fetch();

 private:
  struct Exchange;
  std::optional<std::string> taken(Exchange& exchange);

  bool secure_;
  std::string host_;
  std::string port_;
  std::string path_;
  std::string token_;
  std::string authorities_;
  std::chrono::milliseconds timeout_;
  std::string tag_;
};

}  // namespace olrank
