#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace olrank {

/// What stderr gets: kQuiet warnings and errors only, kVerbose details too. Results never go here.
enum class Verbosity { kQuiet, kNormal, kVerbose };
enum class LogLevel { kDetail, kInfo, kWarning };

void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

/// Writes one line, whole, even when several threads log at once.
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

/// Where lines go instead of stderr; an empty function restores stderr. Returns the one before.
using LogSink = std::function<void(LogLevel, std::string_view)>;
LogSink set_log_sink(LogSink sink);

}  // namespace olrank
