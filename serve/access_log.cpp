#include "serve/access_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>

#include "core/error.h"

namespace olrank {

AccessLog::AccessLog(const std::string& path) {
  if (path == "-") {
    file_.reset(stdout);
    return;
  }
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) throw IoError("open", path, errno);
  file_.reset(::fdopen(descriptor, "a"));
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

/// A line that cannot be written is lost: answers matter more.
void AccessLog::add(std::string_view method, std::string_view path, int status, double seconds,
                    std::size_t bytes) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::string line = fmt::format(
      "{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"method\":\"{}\",\"path\":\"{}\",\"status\":{},"
      "\"seconds\":{:.6f},\"bytes\":{}}}\n",
      fmt::gmtime(std::chrono::system_clock::to_time_t(now)), now.time_since_epoch().count() % 1000, method,
      path, status, seconds, bytes);
  std::fwrite(line.data(), 1, line.size(), file_.get());
  if (file_.get() == stdout) std::fflush(stdout);
}

}  // namespace olrank
