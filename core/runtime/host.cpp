#include "core/runtime/host.h"

#include <unistd.h>

#include <ctime>
#include <fstream>

namespace olrank {
namespace {

constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown";
}

std::int64_t resident_bytes() {
  std::ifstream pages_file("/proc/self/statm");
  std::int64_t whole = 0;
  std::int64_t resident = 0;
  return pages_file >> whole >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, kFormat, &parts);
  return text;
}

std::optional<std::int64_t> utc_seconds(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), kFormat, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&parts);
}

}  // namespace olrank
