#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace olrank {

/// With kQuiet only warnings and errors go to stderr, with kVerbose details too. Results never do.
enum class Verbosity { kQuiet, kNormal, kVerbose };
enum class LogLevel { kDetail, kInfo, kWarning };

void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

/// Writes one line without interleaving it with those of other threads.
void log_line(LogLevel level, std::string_view message);

template <class... Args>
void log_detail(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() == Verbosity::kVerbose)
    log_line(LogLevel::kDetail, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() != Verbosity::kQuiet)
    log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

/// Sends lines to a function instead of stderr; an empty function restores stderr. Returns the previous
/// sink.
using LogSink = std::function<void(LogLevel, std::string_view)>;
LogSink set_log_sink(LogSink sink);

}  // namespace olrank
