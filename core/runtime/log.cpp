#include "core/runtime/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

namespace olrank {
namespace {

std::atomic<Verbosity> current_verbosity{Verbosity::kNormal};
std::mutex sink_mutex;
LogSink& sink() {
  static LogSink instance;
  return instance;
}

}  // namespace

void set_verbosity(Verbosity verbosity) {
  current_verbosity = verbosity;
}
Verbosity verbosity() {
  return current_verbosity;
}

LogSink set_log_sink(LogSink replacement) {
  const std::lock_guard lock(sink_mutex);
  return std::exchange(sink(), std::move(replacement));
}

void log_line(LogLevel level, std::string_view message) {
  const std::lock_guard lock(sink_mutex);
  if (sink()) {
    sink()(level, message);
    return;
  }
  const std::string line = fmt::format("{}{}\n", level == LogLevel::kWarning ? "warning: " : "", message);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace olrank
